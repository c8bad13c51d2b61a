"""One plot as SVG: lines over two logarithmic axes, each named at its end. Readable on light and on dark pages."""
import html
import math

WIDTH, HEIGHT = 800, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 250, 48, 58
LINE = 17  # least distance between two names

STYLE = """
  .page { fill: #ffffff; }
  text { font: 13px sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: bold; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .line { fill: none; stroke-width: 2.5; }
  .c0 { stroke: #0b62c4; } .d0 { fill: #0b62c4; }
  .c1 { stroke: #b35900; } .d1 { fill: #b35900; }
  .c2 { stroke: #a3195b; } .d2 { fill: #a3195b; }
  .c3 { stroke: #3f6f21; } .d3 { fill: #3f6f21; }
  .c4 { stroke: #6e40c9; } .d4 { fill: #6e40c9; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #e6edf3; }
    .grid { stroke: #30363d; }
    .c0 { stroke: #6cb6ff; } .d0 { fill: #6cb6ff; }
    .c1 { stroke: #f0a04b; } .d1 { fill: #f0a04b; }
    .c2 { stroke: #ff8cc6; } .d2 { fill: #ff8cc6; }
    .c3 { stroke: #8ddb62; } .d3 { fill: #8ddb62; }
    .c4 { stroke: #c9a7ff; } .d4 { fill: #c9a7ff; }
  }
"""


def decades(values):
    """That hold the values and leave some room below them."""
    return math.floor(math.log10(min(values)) - 0.05), math.ceil(math.log10(max(values)))


def spread(wanted):
    """Heights for names, in the order of `wanted`, near those and LINE apart."""
    heights = list(wanted)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    for before, after in zip(order, order[1:]):
        heights[after] = max(heights[after], heights[before] + LINE)
    return heights


def number(exponent):
    if exponent >= 6:
        return f"{10 ** (exponent - 6):,} million"
    return f"{10 ** exponent:,}" if exponent >= 0 else f"{10.0 ** exponent:g}"


def plot(title, x_name, y_name, lines):
    """`lines`: (name, one of five colours, [(x, y)]); all values positive."""
    x_low, x_high = (math.log10(bound([x for *_, points in lines for x, _ in points])) for bound in (min, max))
    y_low, y_high = decades([y for *_, points in lines for _, y in points])

    def x_of(x):
        return LEFT + (math.log10(x) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_of(y):
        return HEIGHT - BOTTOM - (math.log10(y) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           f'aria-label="{html.escape(title)}">', f"<style>{STYLE}</style>",
           f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text class="title" x="{LEFT}" y="26">{html.escape(title)}</text>']
    for exponent in range(y_low, y_high + 1):
        y = y_of(10.0 ** exponent)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(exponent)}</text>')
    for exponent in range(math.ceil(x_low), math.floor(x_high) + 1):
        x = x_of(10.0 ** exponent)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{number(exponent)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">{html.escape(x_name)}</text>')
    out.append(f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
               f"{html.escape(y_name)}</text>")
    names = spread([y_of(points[-1][1]) + 4 for *_, points in lines])
    for (name, colour, points), height in zip(lines, names):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        out.append(f'<polyline class="line c{colour}" points="{path}"/>')
        out.append(f'<text class="d{colour}" x="{WIDTH - RIGHT + 8}" y="{height:.1f}">{html.escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
