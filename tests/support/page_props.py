"""A file page_props.sql, as mysqldump writes it; and its rows, by a plain reader that goes from sign to sign."""

from collections.abc import Iterator, Sequence

Row = tuple[int, str, bytes]  # page id, property, value
_HEAD = """-- MariaDB dump 10.19  Distrib 10.5.26-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: db1000    Database: {wiki}
-- ------------------------------------------------------
-- Server version	10.6.19-MariaDB-log

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;

--
-- Table structure for table `page_props`
--

DROP TABLE IF EXISTS `page_props`;
/*!40101 SET character_set_client = utf8 */;
CREATE TABLE `page_props` (
  `pp_page` int(10) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`),
  UNIQUE KEY `pp_propname_page` (`pp_propname`,`pp_page`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=COMPRESSED;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `page_props`
--

LOCK TABLES `page_props` WRITE;
/*!40000 ALTER TABLE `page_props` DISABLE KEYS */;
"""
_TAIL = """/*!40000 ALTER TABLE `page_props` ENABLE KEYS */;
UNLOCK TABLES;

-- Dump completed on 2026-11-02  3:12:45
"""
_ESCAPED = {0: "\\0", 10: "\\n", 13: "\\r", 26: "\\Z", 34: '\\"', 39: "\\'", 92: "\\\\"}
_MEANT = {"0": 0, "n": 10, "r": 13, "Z": 26, "t": 9, "b": 8}


def sql(statements: Sequence[Sequence[Row]], wiki: str = "testwiki") -> bytes:
    """The file's bytes; an INSERT for each list of rows."""
    lines = [b"INSERT INTO `page_props` VALUES " + b",".join(map(_row, rows)) + b";\n" for rows in statements]
    return _HEAD.format(wiki=wiki).encode() + b"".join(lines) + _TAIL.encode()


def _row(row: Row) -> bytes:
    page, name, value = row
    text = b"".join(_ESCAPED[each].encode() if each in _ESCAPED else bytes([each]) for each in value)
    key = b"NULL" if page % 3 else b"-1.5e-05"
    return b"(%d,'%s','%s',%s)" % (page, name.encode(), text, key)


def plain_rows(content: bytes) -> Iterator[Row]:
    """The rows of such a file, a sign after the other."""
    for line in content.split(b"\n"):
        if not line.startswith(b"INSERT"):
            continue
        fields: list[bytearray] = [bytearray()]
        is_quoted = is_escaped = False
        for sign in line[line.index(b"(") :]:
            letter = chr(sign)
            if is_escaped:
                fields[-1].append(_MEANT.get(letter, sign))
                is_escaped = False
            elif is_quoted and letter == "\\":
                is_escaped = True
            elif letter == "'":
                is_quoted = not is_quoted
            elif is_quoted:
                fields[-1].append(sign)
            elif letter == "(":
                fields = [bytearray()]
            elif letter == ",":
                fields.append(bytearray())
            elif letter == ")":
                yield int(fields[0]), fields[1].decode(), bytes(fields[2])
            else:
                fields[-1].append(sign)
