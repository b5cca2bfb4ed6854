"""The conformance kit: devices that keep the port pass, and each broken one fails by the check named for it."""
