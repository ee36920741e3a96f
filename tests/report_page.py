#!/usr/bin/env python3
"""report_page.py PAGE TABLE.json: is the page of `flashgen report` whole, and do its numbers agree
with `flashgen wisdom show --all --json` of the same files?

The page must be XML, load nothing and run nothing, and each link must lead to a place in it. Each
measurement with a time must be a cell of a map with its share of the best, computed here anew; each
spec and shape a box of the map of fastest plans, in a line with shapes of the same heads and layout
alone, and a row of figures with the fastest plan, its time and, for masks that are known here, its
TFLOP/s. Prints what it has compared; exit 1 with a sentence for the first thing that is wrong.
"""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

HTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
ELEMENTS = """html head meta title style body nav main header footer section div p span h1 h2 h3 h4
    a ol ul li dl dt dd small code br table caption thead tbody tr th td svg g rect circle path
    text""".split()
ATTRIBUTES = """lang charset name content id class href colspan rowspan role aria-label width height
    viewBox x y cx cy r rx d text-anchor transform""".split()


def fail(format, *values):
    sys.exit("report_page: " + format % values)


def bare(tag):
    return tag.replace(HTML, "").replace(SVG, "")


def text_of(node):
    return "".join(node.itertext())


def check_room(text):
    """Does a label fit between its end and the picture's edge? 5 is less than most letters take."""
    end = float(text.get("y" if "transform" in text.attrib else "x"))
    leads_there = "transform" in text.attrib or text.get("text-anchor") == "end"
    if leads_there and end < 5 * len(text_of(text)):
        fail("a picture has no room for %s", text_of(text))


def check_markup(page, root):
    """Nothing that runs or loads; a page of one part."""
    ids, links = set(), []
    for node in root.iter():
        if bare(node.tag) not in ELEMENTS:
            fail("an element %s", node.tag)
        for name, value in node.attrib.items():
            if name not in ATTRIBUTES:
                fail("%s has an attribute %s", node.tag, name)
            if name == "id" and value in ids:
                fail("two elements have the id %s", value)
            if name == "id":
                ids.add(value)
            if name == "href":
                links.append(value)
        if bare(node.tag) == "svg" and node.get("role") == "img":
            if not node.get("viewBox") or not node.get("aria-label"):
                fail("a picture lacks its box or label")
        if bare(node.tag) == "text":
            check_room(node)
    for link in links:
        if link[0] != "#" or link[1:] not in ids:
            fail("a link to %s", link)
    for part in ("prefers-color-scheme: dark", "@media print", 'name="viewport"', "<!DOCTYPE html>"):
        if part not in page:
            fail("the page has no %s", part)
    style = text_of(next(root.iter(HTML + "style")))
    for part in ("url(", "@import"):
        if part in style:
            fail("the style has %s", part)
    return len(links)


def spec_of(m):
    return m["variant"].split(".")[0], m["variant"].split(".")[-1], m["device"]


# How shapes of each kind of kernel read, by an extent that no other kind has; attention has none.
READS = {"rows": "{rows} rows", "parts": "{parts} parts b{b} h{h} {nq}",
         "positions": "b{b} h{h}/{hk} {nq} to {nk}", None: "b{b} h{h}/{hk} {nq}×{nk}"}
LAYOUT = ("tokens_q", "tokens_k", "pages", "page")
SHAPE = (r"(?:\d+ rows|\d+ parts b\d+ h\d+ \d+|b\d+ h\d+/\d+ \d+(?:×| to )\d+)"
         r"(?: (?:%s)=\d+)*(?: align \d+)?" % "|".join(LAYOUT))


def shape_text(m):
    shape = m["shape"]
    kind = next((x for x in READS if x in shape), None)
    text = READS[kind].format(**shape) + "".join(f" {x}={shape[x]}" for x in LAYOUT if x in shape)
    return text + (f" align {shape['align']}" if shape["align"] != 16 else "")


def has_time(m):
    return m["status"] in ("ok", "slow") and 0 < (m.get("ms") or 0) < 1e7


def counts(m):
    return m.get("verified") == 1 and has_time(m)


def cells_of(measured):
    """Of each variant at a shape the newest generation alone."""
    cells = {}
    for m in measured:
        plans = cells.setdefault((spec_of(m), tuple(m["shape"].items())), {})
        if m["variant"] not in plans or m["generation"] > plans[m["variant"]]["generation"]:
            plans[m["variant"]] = m
    return cells


def means(shape):
    """Rows and keys of a sequence in the mean, as far as tokens and pages tell."""
    b, nq, nk = (shape.get(x, 0) for x in ("b", "nq", "nk"))
    tokens_q, tokens_k, pages, page = (shape.get(x, 0) for x in LAYOUT)
    if b == 0:
        return nq, nk
    nq, nk = -(-tokens_q // b) if tokens_q else nq, -(-tokens_k // b) if tokens_k else nk
    if page and pages * page < 1 << 63:
        nk = min(nk, pages * page // b)
    return nq, nk


def line_of(shape):
    """What shapes of one line in the map of fastest plans have in common."""
    nq, nk = shape.get("nq", 0), shape.get("nk", 0)
    mean_q, mean_k = means(shape)
    rows = None if nq == nk and mean_q == mean_k else nq
    page = shape.get("page", 0)
    layout = "tokens_q" in shape, "tokens_k" in shape, page, "pages" in shape and not page
    return shape.get("h"), shape.get("hk"), rows, *layout, mean_q < nq or mean_k < nk


def are_equal(layout, shape):
    """Are all sequences as long as the longest one?"""
    b, nq, nk = shape["b"], shape["nq"], shape["nk"]
    tokens_q, tokens_k, pages, page = (shape.get(x, 0) for x in LAYOUT)
    if "-qpacked" in layout and tokens_q != b * nq or "-kvpacked" in layout and tokens_k != b * nk:
        return False
    return "-kvpaged" not in layout or page == 0 or pages >= b * -(-nk // page)


def flops(name, expression, shape):
    """None: of a mask or a kind that is not known here, of sequences of many lengths, and of rows too
    many to count. 0: of no launch."""
    if any(x in shape for x in READS):
        return None
    b, h, hk, nq, nk = (shape[x] for x in ("b", "h", "hk", "nq", "nk"))
    if max(shape[x] for x in shape if x != "align") >= 1 << 30 or (h and (hk == 0 or h % hk)):
        return 0
    if nq > 1 << 17:
        return None
    form = re.match(r"attn_(fwd|bwd)-b?f16-d(\d+)(?:v(\d+))?(-causal|-mask_[0-9a-f]{16})?((?:-qpacked)?(?:-kv\w+)?)$", name)
    window = re.match(r"mask=k - p <= 0 && p - k <= (\d+)$", expression)
    if not form or (form[4] or "").startswith("-mask") != bool(window) or not are_equal(form[5], shape):
        return None
    pairs = nq * nk
    if form[4] and nq > nk and nq > 256:  # few of the rows see a key, and those counted may not
        return None
    if form[4]:
        width = int(window[1]) + 1 if window else nk
        pairs = sum(max(0, min(p + 1, nk) - max(0, p + 1 - width)) for p in range(nk - nq, nk))
    forward = 2 * (int(form[2]) + int(form[3] or form[2])) * pairs * b * h
    return forward if form[1] == "fwd" else 2.5 * forward


def rows_of(section):
    """shape: cells of the row, of the table of the fastest plans."""
    for table in section.iter(HTML + "table"):
        if text_of(table).strip().startswith("shapefastest plan"):
            return {text_of(row[0]): [text_of(x) for x in row] for row in table.iter(HTML + "tr")}
    fail("a spec has no table")


def check_row(spec, m, best, rows, rest):
    row = rows.get(shape_text(m))
    if row is None:
        fail("%s has no row for %s", spec, shape_text(m))
    if not best:
        if row[1] != "none":
            fail("%s, %s: %s is called the fastest", spec, row[0], row[1])
        return 0
    if (row[1], row[2]) != (best["variant"].split(".", 1)[1].rsplit(".", 1)[0], "%.4f" % best["ms"]):
        fail("%s, %s: the page has %s, not %s %s", spec, row[0], row, best["variant"], best["ms"])
    if rest and abs(float(row[7]) - rest[0]["ms"] / best["ms"]) > 0.0006:
        fail("%s, %s: the next best is %s times", spec, row[0], row[7])
    work = flops(spec[0], best.get("expression", ""), best["shape"])
    if work is None:
        return 0
    if not work:
        if row[3]:
            fail("%s, %s: %s TFLOP/s of nothing", spec, row[0], row[3])
        return 0
    # rows are counted one of so many: half a percent; four digits
    if not row[3] or abs(float(row[3]) / (work / best["ms"] * 1e-9) - 1) > 0.0055:
        fail("%s, %s: %s TFLOP/s, expected %s", spec, row[0], row[3], work / best["ms"] * 1e-9)
    return 1


def check_winner(spec, m, best, boxes):
    title = boxes.get(shape_text(m), ("", None))[0]
    plan = best["variant"].split(".", 1)[1].rsplit(".", 1)[0] if best else ""
    expected = f"{shape_text(m)}: {plan}, {best['ms']:.4g} ms" if best else f"{shape_text(m)}: no plan has a time"
    if not title.startswith(expected):
        fail("%s: the box says %s, not %s", spec, title, expected)


def check_lines(spec, shapes, boxes):
    """Lines have different labels, boxes of a line are of one kind of shape and lie beside each other."""
    places = {}
    for shape in shapes:
        x, y, width = boxes[shape_text({"shape": shape})][1]
        places.setdefault(y, []).append((x, width, line_of(shape)))
    lines = [{line for _, _, line in place} for place in places.values()]
    if any(len(line) > 1 for line in lines):
        fail("%s: a line has shapes of several kinds: %s", spec, max(lines, key=len))
    if len(set.union(*lines)) < len(lines):
        fail("%s: shapes of one kind are in several lines", spec)
    for place in places.values():
        place.sort()
        for (x, width, _), (other, _, _) in zip(place, place[1:]):
            if x + width > other + 0.1:
                fail("%s: a box at %s covers that at %s", spec, x, other)


def check_heat(section, spec, cell, shape, best):
    marks = {"wrong": "W", "refused": "R", "fault": "B"}
    for m in cell.values():
        head = f'{m["variant"]} at {shape_text(m)}'
        group = section.get(head)
        if group is None:
            fail("no cell says %s", head)
        text = "".join(text_of(x) for x in group.findall(SVG + "text"))
        share = 100 * best["ms"] / m["ms"] if best and has_time(m) else 0
        expected = "%.0f" % share if 0 < share < 999 else "999" if share else marks.get(m["status"], "?")
        if text != expected:
            fail("%s: the cell says %s, not %s", head, text, expected)
    return len(cell)


def boxes_of(section):
    """shape: title and place of its box, of the map of fastest plans; and no two lines have one label."""
    found = {}
    for picture in section.iter(SVG + "svg"):
        if not picture.get("aria-label", "").startswith("The fastest plan"):
            continue
        labels = [text.text for text in picture.findall(SVG + "text") if text.get("text-anchor") == "end"]
        if len(set(labels)) < len(labels):
            fail("two lines have one label: %s", sorted(labels))
        for group in picture.findall(SVG + "g"):
            title, box = group.find(SVG + "title").text, group.find(SVG + "rect")
            place = tuple(float(box.get(x)) for x in ("x", "y", "width"))
            found[re.match(SHAPE, title)[0]] = title, place
    return found


def heat_groups(section):
    """"VARIANT at SHAPE": its cell, of the map of all plans."""
    found = {}
    for group in section.iter(SVG + "g"):
        title = group.find(SVG + "title")
        head = re.match(rf"(.+? at {SHAPE})(?:[:,]|$)", title.text) if title is not None else None
        if head:
            found[head[1]] = group
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    with open(sys.argv[2], encoding="utf-8", errors="replace") as file:
        measured = json.load(file)["measured"]
    root = ElementTree.fromstring(page)
    links = check_markup(page, root)
    sections = {}
    for section in root.iter(HTML + "section"):
        if section.get("id").startswith("spec-"):
            device = text_of(section.find(HTML + "p")).rsplit("; on ", 1)[1]
            sections.setdefault((text_of(section.find(HTML + "h3")), device), []).append(section)
    heats, rows, known = 0, 0, 0
    maps = {}
    for (spec, shape), cell in cells_of(measured).items():
        timed = sorted((m for m in cell.values() if counts(m)), key=lambda m: m["ms"])
        for section in sections.get((spec[0], spec[2]), []):
            groups = heat_groups(section)
            if f'{next(iter(cell))} at {shape_text(next(iter(cell.values())))}' in groups:
                break
        else:
            fail("no section for %s at %s", spec, shape)
        best = timed[0] if timed else None
        boxes, shapes = maps.setdefault((spec, id(section)), (boxes_of(section), []))
        check_winner(spec, next(iter(cell.values())), best, boxes)
        shapes.append(dict(shape))
        known += check_row(spec, next(iter(cell.values())), best, rows_of(section), timed[1:])
        heats += check_heat(groups, spec, cell, shape, best)
        rows += 1
    for (spec, _), (boxes, shapes) in maps.items():
        check_lines(spec, shapes, boxes)
    print(f"{links} links, {len(measured)} measurements, {heats} cells of maps, {rows} rows, {known} rates")


if __name__ == "__main__":
    main()
