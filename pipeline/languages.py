"""What differs between the languages of Wikipedia: link trails, magic words, prefixes, template names."""

# ruff: noqa: SIM905

import re
from functools import cache

_LATIN_FRENCH = "a-zàâçéèêîôûäëïöüùÇÉÂÊÎÔÛÄËÏÖÜÀÈÙ"
_CYRILLIC = "a-zа-яё"

# The letters that, right after ``]]``, belong to the link (MediaWiki's linkTrail); "" where there is no
# trail.
LINK_TRAIL_LETTERS: dict[str, str] = {
    "ar": "a-zء-ي",
    "arz": "a-zء-ي",
    "be": "a-zабвгґджзеёжзійклмнопрстуўфхцчшыьэюяćčłńśšŭźž",
    "bg": "a-zа-я",
    "bn": "\u0980-\u09ff",
    "bs": "a-zčćđžš",
    "ca": "a-zàèéíòóúç·ïü",
    "cs": "a-záčďéěíňóřšťúůýž",
    "da": "a-zæøå",
    "de": "a-zäöüß",
    "el": "a-zα-ωάέήίόύώϊϋΐΰΑ-ΩΆΈΉΊΌΎΏΪΫ",
    "es": "a-záéíóúñ",
    "et": "a-zäöõšüž",
    "fa": "\u200cءآأئؤةاب-غف-قلمنوهىيپچژکگی",
    "fi": "a-zäö",
    "fr": _LATIN_FRENCH,
    "gl": "a-záâãàéêẽçíòóôõúüűũ",
    "gsw": "a-zäöüß",
    "he": "a-zא-ת",
    "hi": "a-z\u0900-\u097f",
    "hr": "a-zčšžćđß",
    "hu": "a-záéíóúöüőűÁÉÍÓÚÖÜŐŰ",
    "hy": "a-zա-և«»",
    "is": "a-záðéíóúýþæö",
    "it": "a-zàéèíîìóòúù",
    "ja": "",
    "ka": "a-zა-ჰ“»",
    "kk": "a-zа-яёәғіқңөұүһ",
    "ko": "a-z",
    "lt": "a-ząčęėįšųūž",
    "lv": "a-zāčēģīķļņšūž",
    "ml": "a-z\u0d02-\u0d7f",
    "mr": "a-z\u0900-\u097f",
    "nds": "a-zäöüß",
    "nl": "a-zäöüïëéèà",
    "nn": "a-zæøåéêòóôà",
    "no": "a-zæøå",
    "pl": "a-zęóąśłżźćńĘÓĄŚŁŻŹĆŃ",
    "pt": "a-záâãàéêẽçíòóôõúüűũ",
    "ro": "a-zăâîşţșțĂÂÎŞŢȘȚ",
    "ru": _CYRILLIC,
    "sk": "a-záäčďéíľĺňóôŕšťúýž",
    "sl": "a-zčćđžš",
    "sr": "a-zа-яčćđžšђјљњћџ",
    "sv": "a-zåäöéÅÄÖÉ",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c01-\u0c6f",
    "th": "a-z",
    "tr": "a-zÇĞçğİıÖöŞşÜüÂâÎîÛû",
    "uk": "a-zабвгґдеєжзиіїйклмнопрстуфхцчшщьєюяёъы“»",
    "vi": _LATIN_FRENCH,
    "wuu": "",
    "yue": "",
    "zh": "",
    "zh-classical": "",
    "zh-min-nan": "a-z",
    "zh-yue": "",
}

# "#REDIRECT" in each wiki's language; the English word works everywhere.
REDIRECT_WORDS: dict[str, tuple[str, ...]] = {
    "ar": ("تحويل",),
    "arz": ("تحويل",),
    "be": ("перанакіраваньне", "перанакіраванне"),
    "bg": ("пренасочване", "виж"),
    "bn": ("পুনর্নির্দেশ", "পুনঃনির্দেশ"),
    "bs": ("preusmjeri",),
    "cs": ("přesměruj",),
    "cy": ("ail-cyfeirio",),
    "da": ("omdirigering",),
    "de": ("weiterleitung",),
    "el": ("ανακατευθυνση",),
    "eo": ("alidirekti",),
    "es": ("redirección",),
    "et": ("suuna",),
    "eu": ("birzuzendu",),
    "fa": ("تغییرمسیر", "تغییر_مسیر"),
    "fi": ("ohjaus", "uudelleenohjaus"),
    "fr": ("redirection",),
    "ga": ("athsheoladh",),
    "gl": ("redirección",),
    "he": ("הפניה",),
    "hi": ("पुनर्प्रेषित", "अनुप्रेषित"),
    "hr": ("preusmjeri",),
    "hu": ("átirányítás",),
    "hy": ("վերահղում",),
    "id": ("alih",),
    "is": ("tilvísun",),
    "it": ("rinvia", "rinvio"),
    "ja": ("転送", "リダイレクト", "\uff92転送"),
    "ka": ("გადამისამართება",),
    "kk": ("айдау",),
    "ko": ("넘겨주기",),
    "lt": ("peradresavimas",),
    "mk": ("пренасочување", "види"),
    "ml": ("തിരിച്ചുവിടുക",),
    "mr": ("पुनर्निर्देशन",),
    "ms": ("lencong",),
    "nl": ("doorverwijzing",),
    "nds": ("wiederleiden",),
    "nn": ("omdiriger",),
    "no": ("omdirigering",),
    "pl": ("patrz", "przekieruj", "tam"),
    "pt": ("redirecionamento",),
    "ro": ("redirecteaza",),
    "ru": ("перенаправление", "перенапр"),
    "sk": ("presmeruj",),
    "sl": ("preusmeritev",),
    "sq": ("ridrejto",),
    "sr": ("преусмери", "preusmeri"),
    "sv": ("omdirigering",),
    "ta": ("வழிமாற்று",),
    "te": ("దారిమార్పు",),
    "th": ("เปลี่ยนทาง",),
    "tr": ("yönlendirme", "yönlendir"),
    "uk": ("перенаправлення",),
    "ur": ("رجوع_مکرر",),
    "uz": ("yoʻnaltirish",),
    "vi": ("đổi",),
    "yi": ("ווייטערפירן",),
    "zh": ("重定向",),
}

FILE, CATEGORY = 6, 14

# Older or foreign spellings of the File and Category prefixes that <siteinfo> does not list.
NAMESPACE_ALIASES: dict[str, dict[str, int]] = {
    "ar": {"ملف": 6, "صورة": 6, "تصنيف": 14},
    "ca": {"fitxer": 6, "imatge": 6, "categoria": 14},
    "cs": {"soubor": 6, "kategorie": 14},
    "da": {"fil": 6, "billede": 6, "kategori": 14},
    "de": {"datei": 6, "bild": 6, "kategorie": 14},
    "el": {"αρχείο": 6, "εικόνα": 6, "κατηγορία": 14},
    "es": {"archivo": 6, "imagen": 6, "categoría": 14},
    "fa": {"پرونده": 6, "تصویر": 6, "رده": 14},
    "fi": {"tiedosto": 6, "kuva": 6, "luokka": 14},
    "fr": {"fichier": 6, "catégorie": 14},
    "he": {"קובץ": 6, "תמונה": 6, "קטגוריה": 14},
    "hu": {"fájl": 6, "kép": 6, "kategória": 14},
    "id": {"berkas": 6, "gambar": 6, "kategori": 14},
    "it": {"immagine": 6, "categoria": 14},
    "ja": {"ファイル": 6, "画像": 6, "カテゴリ": 14},
    "ko": {"파일": 6, "그림": 6, "분류": 14},
    "nl": {"bestand": 6, "afbeelding": 6, "categorie": 14},
    "no": {"fil": 6, "bilde": 6, "kategori": 14},
    "pl": {"plik": 6, "grafika": 6, "kategoria": 14},
    "pt": {"ficheiro": 6, "arquivo": 6, "imagem": 6, "categoria": 14},
    "ro": {"fișier": 6, "imagine": 6, "categorie": 14},
    "ru": {"файл": 6, "изображение": 6, "категория": 14},
    "sv": {"fil": 6, "bild": 6, "kategori": 14},
    "tr": {"dosya": 6, "resim": 6, "kategori": 14},
    "uk": {"файл": 6, "зображення": 6, "категорія": 14},
    "vi": {"tập tin": 6, "hình": 6, "thể loại": 14},
    "zh": {"文件": 6, "档案": 6, "檔案": 6, "图像": 6, "圖像": 6, "分类": 14, "分類": 14},
}

# The canonical names that every wiki accepts beside its own.
CANONICAL_NAMESPACES: dict[str, int] = {
    "media": -2,
    "special": -1,
    "talk": 1,
    "user": 2,
    "user talk": 3,
    "project": 4,
    "project talk": 5,
    "file": 6,
    "image": 6,
    "file talk": 7,
    "image talk": 7,
    "mediawiki": 8,
    "mediawiki talk": 9,
    "template": 10,
    "template talk": 11,
    "help": 12,
    "help talk": 13,
    "category": 14,
    "category talk": 15,
}

# Names of the templates that mark a disambiguation page, lower-cased, all languages together.
DISAMBIGUATION_TEMPLATES: frozenset[str] = frozenset(
    name.strip()
    for name in """disambiguation|disambig|disamb|dab|disambiguation page|disambig-cleanup
    |disambiguation cleanup|disam|disambiguate|hndis|hndis-cleanup|geodis|geodab|schooldis|hospitaldis
    |mathdab|mathdisambig|airport disambig|numberdis|letter-disambig|letter-number combination disambiguation
    |letter disambiguation|place name disambiguation|human name disambiguation|chinese title disambiguation
    |species latin name disambiguation|biology disambiguation|call sign disambiguation|tla|tladisambig|3cc
    |4cc|5lc|roaddis|road disambiguation|shipindex/disambig|phone number disambiguation|wp disambig
    |begriffsklärung|bkl|begriffsklaerung|homonymie|homonyme|paronymie|patronyme homonymie
    |internationalisation homonymie|toponymie|villes homonymes|homonymie de nom romain|sigle|arrêt homonyme
    |desambiguación|disambigua|disambigua/nome|desambiguação|desambig|dp|dpintro|dp cyclus
    |doorverwijspagina|ujednoznacznienie|strona ujednoznaczniająca|disambigr|неоднозначность|многозначность
    |список однофамильцев|однофамильцы|неоднозначність|disambigg|багатозначність|неадназначнасць
    |неадназначнасьць|пояснение|пояснителна страница|вишезначна одредница
    |вишезначна|aimai|曖昧さ回避|人名の曖昧さ回避
    |地名の曖昧さ回避|山の曖昧さ回避|駅の曖昧さ回避|曖昧さ回避ページ|同名の地名|同名の人物
    |消歧义|消歧義|消歧义页|消歧義頁|搞清楚|人名消歧义|地名消歧义
    |人名消歧義|地名消歧義|搞清楚頁|동음이의
    |동명이인|동음이의어|توضيح|صفحة توضيح|ابهام‌زدایی|ابهام زدایی|ضد ابہام|פירושונים|פירושון|förgrening|gren
    |förgreningssida|peker|flertydig|fleirtyding|flertydig2|täsmennyssivu|täsmennys|rozcestník|rozcestnik
    |rozlišovacia stránka|egyért|egyértelműsítő lap|egyértelműsítő|egyert|anlam ayrımı|anlam ayrım|định hướng
    |trang định hướng|dezambiguizare|dez|desambiguació|argipen|αποσαφήνιση|αποσαφ|razdvojba|razločitev
    |täpsustuslehekülg|nuorodinis|nuorodinis straipsnis|nozīmju atdalīšana|apartigilo|apartigo|nyahkekaburan
    |homónimos|discretiva|բազմիմաստություն|მრავალმნიშვნელოვანი|айрық|çevir|बहुविकल्पी|बहुविकल्पी शब्द
    |निःसंदिग्धीकरण|দ্ব্যর্থতা নিরসন|பக்கவழி நெறிப்படுத்தல்|అయోమయ నివృత్తి|വിവക്ഷകൾ|แก้กำกวม|aðgreining
    |aðgreiningarsíða|idirdhealú|gwahaniaethu|kthjellim|појаснување|maitnis|dubbelsinnig|homonimia""".split(
        "|"
    )
)

# Prefixes of the other languages' Wikipedias (interlanguage links).
LANGUAGE_CODES: frozenset[str] = frozenset(
    """aa ab ace ady af ak als alt am ami an ang anp ar arc ary arz as ast atj av avk awa ay az azb ba ban
    bar bat-smg bbc bcl be be-tarask be-x-old bew bg bh bho bi bjn blk bm bn bo bpy br bs btm bug bxr ca
    cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz
    ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn
    gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl
    ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc
    ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv mad mai map-bms mdf mg
    mh mhr mi min mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl ne new
    ng nia nl nn no nov nqo nr nrm nso nv ny oc olo om or os pa pag pam pap pcd pcm pdc pdt pfl pi pih pl pms
    pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs
    sh shi shn si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw szl szy ta tay tcy tdd te tet tg
    th ti tig tk tl tly tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war
    wo wuu xal xh xmf yi yo yue za zea zgh zh zh-classical zh-cn zh-min-nan zh-tw zh-yue zu""".split()
)

# Prefixes of other projects that all wikis share.
INTERWIKI_PREFIXES: frozenset[str] = frozenset(
    """b betawikiversity bugzilla c commons d doi foundation foundationsite gerrit google imdbname
    imdbtitle incubator iarchive jstor m mail mailarchive mariowiki mediawikiwiki memoryalpha meta metawiki
    metawikimedia metawikipedia mw n oeis orain outreach phab phabricator pmid q quality s
    sourceforge species stats strategy testwiki toollabs toolforge ticket translatewiki usability
    uncyclopedia v viaf voy w wikia wikibooks wikicities wikidata wikimedia wikinews wikipedia wikiquote
    wikisource wikispecies wikitech wikiversity wikivoyage wikt wiktionary wmf wookieepedia""".split()
)

# Scripts in which a line break inside a paragraph stands for nothing, not for a blank.
UNSPACED_LANGUAGES: frozenset[str] = frozenset({"ja", "zh", "wuu", "yue", "zh-classical", "zh-yue", "gan"})


def base_language(language: str) -> str:
    """The code under which the tables file a language: "simple" is English, "zh-hans" is "zh"."""
    code = language.lower().replace("_", "-")
    if code in LINK_TRAIL_LETTERS:
        return code
    return {"simple": "en", "nb": "no", "nan": "zh-min-nan"}.get(code, code.split("-")[0])


@cache
def link_trail(language: str) -> re.Pattern[str]:
    """The pattern of the letters after a link that belong to it; it matches the empty string, too."""
    letters = LINK_TRAIL_LETTERS.get(base_language(language), "a-z")
    return re.compile(f"[{letters}]*" if letters else "")
