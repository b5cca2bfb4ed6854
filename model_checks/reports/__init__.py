"""What a check tells its reader: files for machines, a page for people, stories of counterexamples."""
