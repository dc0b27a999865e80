"""Measures and their conversion: units of every kind, prefixes, quotients, ranges, adjectives, forms."""

import pytest

from pipeline.mediawiki.numbers import number_format
from pipeline.wikitext.templates.rules import Arguments, Wiki
from pipeline.wikitext.templates.units import convert, unit_of

MEASURES = [
    ("1300|mi|km", "1,300 miles (2,100 km)"),
    ("10|km|mi", "10 kilometres (6.2 mi)"),
    ("1|mi", "1 mile (1.6 km)"),
    ("2|m", "2 metres (6 ft 7 in)"),
    ("-40|C", "−40 °C (−40 °F)"),
    ("20|C|F", "20 °C (68 °F)"),
    ("6|ft|4|in|m", "6 feet 4 inches (1.93 m)"),
    ("100|lb|kg|0", "100 pounds (45 kg)"),
    ("100|km|mi|abbr=on", "100 km (62 mi)"),
    ("100|km|mi|abbr=off", "100 kilometres (62 miles)"),
    ("5|mi|km|disp=or", "5 miles or 8.0 km"),
    ("5|mi|km|disp=output number only", "8.0"),
    ("50|kn", "50 knots (93 km/h; 58 mph)"),
    # prefixes and scales
    ("22|e6acre|e6ha", "22 million acres (8.9×10⁶ ha)"),
    ("4|e6mi|abbr=off|sp=us", "4 million miles (6.4 million kilometers)"),
    ("5|e9m3|e9cuft|abbr=on", "5×10⁹ m3 (180×10⁹ cu ft)"),
    ("160|Tcuft", "160 trillion cubic feet (4.5×10¹² m3)"),
    ("166|Goilbbl", "166 billion barrels (2.6×10¹⁰ m3)"),
    ("1.4|Moilbbl/d", "1.4 million barrels per day (220×10³ m3/d)"),
    ("400000|oilbbl/d", "400,000 barrels per day (64,000 m3/d)"),
    ("1013|hPa|inHg", "1,013 hectopascals (29.9 inHg)"),
    ("5|MeV|J|abbr=on", "5 MeV (8.0×10⁻¹³ J)"),
    # quotients and products, and other kinds
    ("90|mi/h", "90 miles per hour (140 km/h)"),
    ("30|m3/s", "30 cubic metres per second (1,100 cu ft/s)"),
    ("60|impgal/min|L/min", "60 imperial gallons per minute (270 L/min)"),
    ("43.5|mpgimp", "43.5 miles per imperial gallon (6.5 L/100 km; 36.2 mpg‑US)"),
    ("6.5|L/100km|mpgus|abbr=on", "6.5 L/100 km (36 mpg‑US)"),
    ("6000|sqm", "6,000 square metres (65,000 sq ft)"),
    ("200|lb.ft|N.m", "200 pound force-feet (270 N⋅m)"),
    ("1|g/cm3|kg/m3", "1 gram per cubic centimetre (1,000 kg/m3)"),
    ("5|C-change", "5 °C (9.0 °F)"),
    ("3|cwt|kg", "3 long hundredweight (150 kg)"),
    # ranges
    ("10|to|20|km|mi", "10 to 20 kilometres (6.2 to 12.4 mi)"),
    ("7|–|8|C-change", "7–8 °C (13–14 °F)"),
    ("105|and(-)|130|cm|ft", "105 and 130 centimetres (3.4–4.3 ft)"),
    ("5|to(-)|6|km|mi", "5 to 6 kilometres (3.1–3.7 mi)"),
    ("5|x|10|ft|m", "5 by 10 feet (1.5 m × 3.0 m)"),
    ("1|,|2|, and|3|km|mi", "1, 2, and 3 kilometres (0.62, 1.24, and 1.86 mi)"),
    ("7|–|8|smidgens", "7–8 smidgens"),
    # adjectives and order
    ("5|mi|km|adj=on", "5-mile (8.0 km)"),
    ("2|m|adj=mid|-high", "2-metre-high (6 ft 7 in)"),
    ("4|mi|km|adj=pre|statute", "4 statute miles (6.4 km)"),
    ("1000|ft|m|sing=on", "1,000-foot (300 m)"),
    ("5|mi|km|order=flip", "8.0 kilometres (5 mi)"),
    ("5|mi|km|disp=flip", "8.0 kilometres (5 mi)"),
    ("5|mi|km|order=flip|abbr=on", "8.0 km (5 mi)"),
    ("5|mi|km|order=flip|adj=on", "8.0-kilometre (5 mi)"),
    # what cannot be converted
    ("300|furlongs-of-old", "300 furlongs-of-old"),
    ("5|km|kg", "5 kilometres"),
    ("5|", "5"),
]


@pytest.mark.parametrize(("arguments", "shown"), MEASURES)
def test_measures(arguments: str, shown: str) -> None:
    assert convert(Arguments(f"convert|{arguments}")) == shown


@pytest.mark.parametrize("arguments", ["", "x|km", "de|Berlin", "1|to|x|km", "9" * 50 + "|km", "||"])
def test_without_a_number_nothing_is_shown(arguments: str) -> None:
    assert convert(Arguments(f"convert|{arguments}")) is None


@pytest.mark.parametrize("code", ["", "/", "km/", "." * 90, "m/" * 30 + "s", "e6", "e6e6e6e6e6m", "kkm", "x" * 200])
def test_no_code_of_a_unit_costs_much(code: str) -> None:
    assert unit_of(code) is None or len(code) < 41


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        ("en", "5,334 kilometers (3,314 mi)"),
        ("simple", "5,334 kilometers (3,314 mi)"),
        ("ja", "5,334 km (3,314 mi)"),
        ("he", "5,334 km (3,314 mi)"),
        ("de", "5.334 km (3.314 mi)"),
    ],
)
def test_names_of_units_are_english_in_english_wikis_alone(language: str, shown: str) -> None:
    wiki = Wiki(language, "", {}, (), number_format(language))
    assert convert(Arguments("convert|5334|km|mi|sp=us", wiki)) == shown
