"""A file page_props.sql, as mysqldump writes it."""

from collections.abc import Sequence

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


def sql(statements: Sequence[Sequence[Row]], wiki: str = "testwiki") -> bytes:
    """The file's bytes; an INSERT for each list of rows."""
    lines = [b"INSERT INTO `page_props` VALUES " + b",".join(map(_row, rows)) + b";\n" for rows in statements]
    return _HEAD.format(wiki=wiki).encode() + b"".join(lines) + _TAIL.encode()


def _row(row: Row) -> bytes:
    page, name, value = row
    text = b"".join(_ESCAPED[each].encode() if each in _ESCAPED else bytes([each]) for each in value)
    key = b"NULL" if page % 3 else b"-1.5e-05"
    return b"(%d,'%s','%s',%s)" % (page, name.encode(), text, key)
