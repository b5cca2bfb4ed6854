"""The page of a report: one template, its style within."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ground: #fbfbfa; --ink: #1d2126; --soft: #5d6570; --line: #d9dce1; --card: #ffffff;
  --good: #137a3f; --bad: #b3261e; --doubt: #8a5a00; --mark: #2f6fde; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --ink: #e4e7eb; --soft: #9aa3af; --line: #343a43;
  --card: #1b1f25; --good: #4cc780; --bad: #ff8a80; --doubt: #e5b45a; --mark: #7fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem 1.25rem 4rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0; color: var(--soft); }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .7rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p.verdict { font-size: 2.3rem; font-weight: 700; margin: .1rem 0 .3rem; letter-spacing: .01em; }
.PROVED, .KILLED { color: var(--good); } .REFUTED, .SURVIVED, .OTHER, .ERROR { color: var(--bad); }
.UNDETERMINED, .BAD { color: var(--doubt); }
.soft { color: var(--soft); } .small { font-size: .86rem; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.1rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; }
.card b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: .32rem .7rem .32rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.v { font-weight: 600; white-space: nowrap; } td.id { white-space: nowrap; font-weight: 600; }
code, .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; }
details > summary { cursor: pointer; color: var(--mark); white-space: nowrap; }
ul { padding-left: 1.2rem; margin: .4rem 0; } li { margin: .15rem 0; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; color: var(--ink); }
svg.spark { width: 90px; max-width: none; height: 18px; display: block; }
svg.spark polyline { fill: none; stroke: var(--mark); stroke-width: 1.3; }
nav a { color: var(--mark); margin-right: 1rem; }
.wide { min-width: 18rem; } .widest { min-width: 25rem; } .name { min-width: 16rem; }
"""

_HEAD: Final = """
<h1>Tenure {{ report.package }} &middot; model checker</h1>
<p class="verdict {{ report.verdict }}">{{ report.verdict }}</p>
<p class="soft">{{ report.written }} &middot; Python {{ report.python }} &middot; code <code>{{ report.code }}</code>
{% if report.interrupted %}&middot; <b class="BAD">interrupted</b>{% endif %}
&middot; {{ "all of the set ci" if report.all_of_ci else "not all of the set ci" }}</p>
{% if report.falls_short %}
<h3>What falls short</h3>
<ul>{% for each in report.falls_short %}<li>{{ each }}</li>{% endfor %}</ul>
{% endif %}
<div class="cards">
<div class="card"><b>{{ report.totals.distinct | number }}</b>distinct states</div>
<div class="card"><b>{{ report.totals.transitions | number }}</b>transitions</div>
<div class="card"><b>{{ report.totals.scopes }}</b>scopes</div>
<div class="card"><b>{{ "%.1f" | format(report.totals.seconds) }} s</b>{{ report.totals.workers }} processes</div>
<div class="card"><b>{{ report.rules | length - elsewhere | length }} of {{ report.rules | length }}</b>rules
exercised</div>
<div class="card"><b>{{ report.marks.goal | length }}</b>goals met</div>
{% if mutants %}<div class="card">
<b class="{{ 'REFUTED' if mutants.killed < mutants.mutants | length }}">{{ mutants.killed }} of
{{ mutants.mutants | length }}</b>planted faults killed</div>{% endif %}
</div>
<nav><a href="#models">models</a><a href="#frontier">frontier</a><a href="#scopes">scopes</a><a href="#rules">rules</a>
<a href="#goals">goals and events</a>{% if mutants %}<a href="#mutants">planted faults</a>{% endif %}
{% if drawings %}<a href="#graphs">state graphs</a>{% endif %}<a href="#assumed">assumed, and not proved</a></nav>
"""

_MODELS: Final = """
<h2 id="models">Models</h2>
<div class="scroll"><table>
<tr><th>model</th><th class="n">scopes</th><th class="n">proved</th><th class="n">distinct</th>
<th class="n">transitions</th><th class="n">depth</th><th class="n">states/s and core</th></tr>
{% for model in report.models %}
<tr><td class="id">{{ model.name }}</td><td class="n">{{ model.scopes }}</td><td class="n">{{ model.proved }}</td>
<td class="n">{{ model.distinct | number }}</td><td class="n">{{ model.transitions | number }}</td>
<td class="n">{{ model.depth }}</td><td class="n">{{ model.states_per_core_second | number }}</td></tr>
{% endfor %}
</table></div>
<h2 id="frontier">Growth of the frontier</h2>
<p class="soft">How many states were first met after so many events.</p>
{% for model, plot in plots.items() %}<h3>{{ model }}</h3>{{ plot | safe_svg }}{% endfor %}
"""

_SCOPES: Final = """
<h2 id="scopes">Scopes</h2>
<div class="scroll"><table>
<tr><th>verdict</th><th class="name">scope</th><th class="n">distinct</th><th class="n">transitions</th>
<th class="n">depth</th><th>frontier</th><th class="n">states/s<br>and core</th><th class="widest">covers</th></tr>
{% for scope in report.scopes %}
<tr><td class="v {{ scope.verdict }}">{{ scope.verdict }}</td>
<td><b>{{ scope.name }}</b><br><span class="small soft">{{ scope.kind }}{{ ", progress too" if scope.progress }}
{%- if scope.source %}, from {{ scope.source }}{% endif %}</span>
{% if scope.reasons or scope.notes %}<ul class="small">{% for each in scope.reasons + scope.notes %}
<li>{{ each }}</li>{% endfor %}
{% for file in scope.files %}<li>tenure explain <code>{{ file }}</code></li>{% endfor %}</ul>
{% endif %}</td>
{% if scope.search %}
<td class="n">{{ scope.search.distinct | number }}</td><td class="n">{{ scope.search.transitions | number }}</td>
<td class="n">{{ scope.search.depth }}</td><td>{{ sparks[scope.name] | safe_svg }}</td>
<td class="n">{{ scope.search.states_per_core_second | number }}</td>
{% else %}<td></td><td></td><td></td><td></td><td></td>{% endif %}
<td class="small soft">
{% for what, value in scope.covers.items() %}{{ what }}&nbsp;{{ value }}{{ "; " if not loop.last }}
{%- endfor %}</td></tr>
{% endfor %}
</table></div>
"""

_RULES: Final = """
<h2 id="rules">Rules</h2>
<div class="scroll"><table>
<tr><th>rule</th><th class="wide">what holds, and why</th><th>checked on</th><th class="n">exercised</th>
<th>in</th></tr>
{% for rule in report.rules %}
<tr><td class="id {{ 'REFUTED' if rule.broken_in }}">{{ rule.id }}{% if rule.broken_in %} broken{% endif %}</td>
<td>{{ rule.sentence }}<br><span class="soft small">{{ rule.reason }} <i>{{ rule.source }}</i></span></td>
<td class="small">{{ rule.kinds | join(", ") }}</td>
<td class="n">{{ rule.exercised.values() | sum | number }}</td>
<td class="small">{% if rule.exercised %}<details><summary>{{ rule.exercised | length }} scopes</summary>
<ul>{% for name, count in rule.exercised.items() %}<li>{{ name }}: {{ count | number }}</li>{% endfor %}</ul></details>
{% else %}<span class="{{ 'BAD' if 'predicate' in rule.kinds or 'transition' in rule.kinds else 'soft' }}">in no
scope</span>{% endif %}</td></tr>
{% endfor %}
</table></div>
"""

_MARKS: Final = """
<h2 id="goals">Goals, events, commands and errors seen</h2>
{% for kind, seen in report.marks.items() %}
<details {{ "open" if kind == "goal" }}><summary>{{ seen | length }} {{ kind }}s</summary>
<div class="scroll"><table>
<tr><th>{{ kind }}</th><th class="n">seen</th><th class="n">in scopes</th><th class="n">first after</th></tr>
{% for each in seen %}
<tr><td class="mono">{{ each.name }}</td><td class="n">{{ each.count | number }}</td>
<td class="n">{{ each.scopes }}</td><td class="n">{{ each.depth }}</td></tr>
{% endfor %}
</table></div></details>
{% endfor %}
"""

_MUTANTS: Final = """
{% if mutants %}
<h2 id="mutants">Planted faults</h2>
<p class="soft">{{ mutants.killed }} of {{ mutants.mutants | length }} are killed by the rule that was named beforehand,
in {{ "%.0f" | format(mutants.seconds) }} s; {{ mutants.written }}{% if mutants.code != report.code %}
&middot; <b class="BAD">of other code than the rest of this page</b>{% endif %}.</p>
<div class="scroll"><table>
<tr><th>fate</th><th>fault</th><th class="wide">what is wrong</th><th>scope</th><th>rule</th><th class="n">depth</th>
<th class="n">states</th><th class="n">seconds</th><th>comes from</th></tr>
{% for each in mutants.mutants %}
<tr><td class="v {{ each.fate }}">{{ each.fate }}</td><td class="id">{{ each.mutant }}</td>
<td>{{ each.what }}
{% if each.why and each.why != each.what %}<br><span class="small REFUTED">{{ each.why }}</span>{% endif %}</td>
<td>{{ each.scope }}</td><td>{{ each.rule }}</td><td class="n">{{ each.depth }}</td>
<td class="n">{{ each.states | number }}</td><td class="n">{{ "%.1f" | format(each.seconds) }}</td>
<td class="small">{{ each.source }}</td></tr>
{% endfor %}
</table></div>
{% endif %}
"""

_END: Final = """
{% if drawings %}
<h2 id="graphs">State graphs</h2>
<p class="soft">Depth from left to right; a square is a state that nothing follows. GraphML of these and of larger ones
lies in <code>graphs/</code>.</p>
{% for name, svg in drawings.items() %}<details {{ "open" if loop.first }}><summary>{{ name }}</summary>
{{ svg | safe_svg }}</details>{% endfor %}
{% endif %}
<h2 id="assumed">What is assumed</h2>
<ul>{% for what, count in report.assumed.items() %}<li>{{ what }} <span class="soft">({{ count }} scopes)</span></li>
{% endfor %}</ul>
<h2>What is not proved</h2>
<ul>{% for each in report.not_proved %}<li>{{ each }}</li>{% endfor %}</ul>
{% if elsewhere %}<p>In no scope of this run was anything to judge for:
{{ elsewhere | map(attribute="id") | join(", ") }}.
</p>{% endif %}
{% if report.remarks %}<h3>To know besides</h3>
<ul>{% for each in report.remarks %}<li>{{ each }}</li>{% endfor %}</ul>{% endif %}
"""

PAGE: Final = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>Tenure model checker: {{ report.verdict }}</title><style>"
    + STYLE
    + "</style></head><body>"
    + _HEAD
    + _MODELS
    + _SCOPES
    + _RULES
    + _MARKS
    + _MUTANTS
    + _END
    + "</body></html>\n"
)
"""For jinja2: `report`, `mutants` (or None), `drawings`, `plots` and `sparks` by name, `elsewhere`."""
