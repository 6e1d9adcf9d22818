"""A badge with a verdict, as SVG, for a README.

badge("onceproof", "12 of 12 as expected", good=True)
"""

from xml.etree import ElementTree

from onceproof.harness.base.text import shown

_HEIGHT, _CHARACTER, _EDGE = 20, 6.6, 6
_LEFT, _GOOD, _BAD = "#444c56", "#2f7d31", "#ab091e"


def badge(label: str, says: str, *, good: bool) -> str:
    """Return a badge: a label, and what it says on green or on red. It needs no fonts and no network."""
    label, says = shown(label), shown(says)
    left, right = (round(len(text) * _CHARACTER + 2 * _EDGE, 1) for text in (label, says))
    svg = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=f"{left + right:g}",
        height=str(_HEIGHT),
        role="img",
        attrib={"aria-label": f"{label}: {says}"},
    )
    ElementTree.SubElement(svg, "title").text = f"{label}: {says}"
    for x, width, fill in ((0.0, left, _LEFT), (left, right, _GOOD if good else _BAD)):
        ElementTree.SubElement(svg, "rect", x=f"{x:g}", width=f"{width:g}", height=str(_HEIGHT), fill=fill)
    style = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11"}
    for x, width, text in ((0.0, left, label), (left, right, says)):
        place = {"x": f"{x + width / 2:g}", "y": "14", "text-anchor": "middle", "textLength": f"{width - 2 * _EDGE:g}"}
        ElementTree.SubElement(svg, "text", attrib={**style, **place}).text = text
    return ElementTree.tostring(svg, encoding="unicode") + "\n"
