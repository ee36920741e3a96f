#!/usr/bin/env python3
"""chart.py - draws the README's picture: speed by length next to the peers, a row of panels for each pass and mask.

    chart.py grid_h200.json --beside fa3_h200.json -o speed.svg

grid_h200.json is the --json of `peers.py`. --beside has a peer that was timed in another run, in turn with cuDNN: its bar
is its ratio to cuDNN there times cuDNN's speed here. The picture follows the reader's light or dark mode and loads no
other file."""
import argparse, html, json

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 13px; font-weight: 600 }
.axis { stroke: #8c959f; stroke-width: 1 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.small { font-size: 10.5px; fill: #57606a }
.p0 { fill: #1f6feb } .p1 { fill: #a8b3c0 } .p2 { fill: #d29922 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #30363d } .axis { stroke: #656c76 }
  .p0 { fill: #4493f8 } .p1 { fill: #6e7681 } .p2 { fill: #e3b341 }
}"""
PASSES = {"fwd": "forward", "bwd": "backward"}
NAMES = ["flashgen", "cuDNN", "FlashAttention-3"]
WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP = 860, 190, 44, 52, 34  # of the picture, a panel, and what is around panels
MOST = 900  # TFLOP/s at the top of a panel


def speeds(rows, beside):
    """{(pass, d, mask): [(n, [ours, cuDNN, FlashAttention-3 or None])]}, lengths in order."""
    panels = {}
    for row in rows:
        cell = "{pass} {d} {mask} {n}".format(**row)
        ours, cudnn = row["tflops"]["flashgen"], row["tflops"]["cudnn"]
        there = beside.get(cell)
        third = cudnn * there[1] / there[0] if there else None
        panels.setdefault((row["pass"], int(row["d"]), row["mask"]), []).append((row["n"], [ours, cudnn, third]))
    return {key: sorted(panels[key]) for key in sorted(panels, key=lambda k: (k[0] != "fwd", k[2] != "full", k[1]))}


def bar(x, y, width, height, peer, label):
    return (f'<rect class="p{peer}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{html.escape(label)}</title></rect>")


def draw_panel(out, at_x, at_y, width, title, lengths):
    height = PANEL_HEIGHT - 46
    floor = at_y + height + 18
    out.append(f'<text class="title" x="{at_x}" y="{at_y + 6}">{html.escape(title)}</text>')
    for value in range(0, MOST + 1, 300):
        y = floor - height * value / MOST
        out.append(f'<line class="{"grid" if value else "axis"}" x1="{at_x}" x2="{at_x + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if at_x == LEFT:
            out.append(f'<text class="small" x="{at_x - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    step = width / len(lengths)
    for i, (n, values) in enumerate(lengths):
        x, each = at_x + i * step + step * 0.14, step * 0.72 / len(values)
        for peer, value in enumerate(values):
            if value is None:
                continue
            tall = height * value / MOST
            out.append(bar(x + peer * each, floor - tall, each - 0.6, tall, peer, f"{NAMES[peer]}, n {n}: {value:.0f} TFLOP/s"))
        name = f"{n // 1024}k" if n >= 1024 else str(n)
        out.append(f'<text class="small" x="{at_x + (i + 0.5) * step:.1f}" y="{floor + 14}" text-anchor="middle">{name}</text>')


def draw(panels, device):
    columns = 3
    width = (WIDTH - LEFT - 8 - (columns - 1) * GAP) / columns
    rows = (len(panels) + columns - 1) // columns
    height = TOP + rows * PANEL_HEIGHT + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
           f"<title>Speed in TFLOP/s on an {html.escape(device)}</title>", f"<style>{STYLE}</style>"]
    x = LEFT
    for peer, name in enumerate(NAMES):
        out.append(f'<rect class="p{peer}" x="{x}" y="12" width="11" height="11"/><text x="{x + 16}" y="22">{name}</text>')
        x += 34 + 7.2 * len(name)
    note = f"{device}: bf16, TFLOP/s by length, 16384 tokens"
    out.append(f'<text class="small" x="{WIDTH - 8}" y="22" text-anchor="end">{html.escape(note)}</text>')
    for i, ((which, d, mask), lengths) in enumerate(panels.items()):
        draw_panel(out, LEFT + i % columns * (width + GAP), TOP + i // columns * PANEL_HEIGHT, width,
                   f"{PASSES[which]}, head dim {d}, {mask}", lengths)
    return "\n".join(out + ["</svg>", ""])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("measured", type=argparse.FileType())
    options.add_argument("--beside", type=argparse.FileType())
    options.add_argument("-o", "--out", required=True)
    choice = options.parse_args()
    measured = json.load(choice.measured)
    beside = json.load(choice.beside)["cells"] if choice.beside else {}
    with open(choice.out, "w") as file:
        file.write(draw(speeds(measured["rows"], beside), measured["device"]))


if __name__ == "__main__":
    main()
