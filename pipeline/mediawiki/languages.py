"""What differs between the languages of Wikipedia: link trails, magic words, prefixes, template names."""

# ruff: noqa: SIM905

import re
from functools import cache


def _rows(table: str) -> dict[str, str]:
    """{language: value} of a table whose rows read ``language,language:value``; no row holds a blank."""
    rows = (row.partition(":") for row in table.split())
    return {language: value for languages, _, value in rows for language in languages.split(",")}


# The letters that, right after ``]]``, belong to the link (MediaWiki's linkTrail), as the inside of a character
# class; "" where there is no trail. Languages that are not here have "a-z".
LINK_TRAIL_LETTERS: dict[str, str] = _rows(
    """ab:a-zа-ик-шыьџҕқҟҧҩҭҳҵҷҽҿәӡӷԥ ady,av,ce,inh,kbd,lez:a-zа-яёӀ alt:a-zа-яёјҥӧӱ
    ami,cdo,gan,hak,ii,zh-min-nan,pwn,szy,tay,trv,wuu,za,zh,zh-classical:
    an,ast,ay,cbk-zam,es,ext,gn,lad,nah,qu:a-záéíñóú anp,awa,hi,mai,sa:a-z\\-\u0900-\u0963०-\ua8e0\ua8ff
    ar,ary,arz:a-z\u0610-\u061aء-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed
    atj,avk,bm,fr,gcr,kab,kbp,ln,mg,nrm,pcd,sg,ty,vi,wo:a-zÀÂÄÇ-ËÎÏÔÖÙÛÜàâäç-ëîïôöùûü az:a-zçöüğışə
    azb,fa,glk,lrc,mzn:آ-ؤئ-غفقل-وپچژکگی\u200c ba:a-z»а-яёғҙҡңҫүһәө“ be,be-tarask:a-zćčłńśšŭźžа-зй-шы-яёіўґ bg:a-zа-я
    bn,bpy:ঀ-\u09ff br:a-zA-ZÀÂÄÇ-ËÎÏÑÔÖÙÛÜàâäç-ëîïñôöùûü bs,sh,sl:a-zćčđšž
    bxr,koi,krc,kv,mdf,mhr,mrj,myv,ru,tyv,xal:a-zа-яё ca:a-z·àç-éíïòóúü ckb:ئ-بتج-در-شعغفقل-وپچڕژڤکگڵھۆیێە\u200c
    co,eml,fur,it,lij,lld,lmo,nap,pms,roa-tara,scn,vec:a-zàèéì-îòóùú crh:a-z»âçñöüğışʹʺа-яё“ cs:a-záéíóúýčďěňřšťůž
    csb,pl,szl:a-zÓóĄ-ćĘęŁ-ńŚśŹ-ż cu:a-z»ıа-пс-яё-ќўџѡѣѥѧѩѫѭѯѱѳѵѷѹѿ\u0484ґ“\uf011 cv:a-z\"»çăĕа-яӳ
    cy:a-zà-âè-êì-ïò-ôûŵŷ da,kl,no,nn:a-zåæø dag:a-zŊŋƆƐƔƷɔɛɣʒ din:a-zäéëïóöŋɔɛɣ\u0308
    ee:a-zŋƒɔɖɛɣʋ\u0300\u0301\u0303\u0304 el,pnt:a-zΆΈ-ΊΌΎ-ΡΣ-ώ et,vro,vep:a-zäõöüšž fat,tw:a-zɔɛ
    ff:a-zÀÂÄÇ-ËÎÏÔÖÙÛÜàâäç-ëîïôöùûüŊŋƁƊƝƳƴɓɗɲ fi:a-zäö fo:a-záæíðóøúý
    fon:a-zÀÂÄÇ-ËÎÏÔÖÙÛÜàâäç-ëîïôöùûüƆƉƐɔɖɛ\u0300-\u0302\u0304\u030c frp:a-z·àâä-ëîïòôöùûüāăēīōœ‘’ frr:a-zßäåöüāđē
    fy:a-zà-âäè-ïò-ôöù-ü gag,tr:a-zÂÇÎÖÛÜâçîöûüĞğİıŞş gl,mwl,pt,tet:a-zà-ãçéêíò-õúüũű\u0303ẽ
    gsw,bar,de,dsb,hsb,lb,nds,pdc,pdt,pfl,stq:a-zßäöü gu:\u0a80-\u0aff guc:a-záéíñóúü gur:a-zA-ZŊŋƆƐƖƲɔɛɩʋ\u0303
    guw:a-zàáèéìíòóùúěǎǐǒɔɖɛ\u030cẹọ he,yi:a-zא-ת hr:a-zßćčđšž ht:a-zÀÈÒàèò hu:a-zÁÉÍÓÖÚÜáéíóöúüŐőŰű hy,hyw:a-z«»ա-և
    ik:a-zñġłŋ\u0323ḷ is:a-z\\-áæéíðóöúýþ– ka,xmf:a-z»ა-ჰ“ kaa:a-z»ıʼ’“ kcg:a-záí\u0331\u200c
    kk:a-z»äçéïñöüýğışʹʺа-яёіғқңүұһәөابتجحدر-شعف-نو-يٴپچڭھۆۇۋە“ ksh:a-zßä-çëöüėğĳœůə ku:a-zÇÊÎÛçêîûŞşḦḧẌẍ
    lbe:a-z1»а-яёӀ“ li,nds-nl,nl,srn,vls,zea:a-zàäèéëïöü ltg,lv:a-zA-ZĀāČčĒēĢģĪīĶķĻļŅņŠšŪūŽž mk:a-zа-ик-шѓѕј-њќџ
    ml:a-z\u0d02-ൿ mn:a-z»а-яё“ mo,rmy,ro,rup:a-zÂÎâîĂăŞşŢţȘ-ț mos:a-zA-ZƐƖƲɛɩʋ\u0303 mr:\u0900-\u0963ॱ-ॿ\u200d\ufeff
    nso:a-zA-ZÊÔêôŠš ny:a-zA-ZŴŵ\u0301 oc:a-zàâç-êîôû olo:a-zÄÖäöČčŠšŽž or:a-z\u0b00-\u0b7f os:a-z»æа-яё“
    pa:a-z\u0a01-\u0a03ਅ-ਊਏਐਓ-ਨਪ-ਰਲ\u0a33ਵ\u0a36ਸਹ\u0a3c\u0a3e-\u0a42\u0a47\u0a48\u0a4b-\u0a4d\u0a59-ੜ\u0a5e\u0a70-ੳ
    pcm:a-zá rsk:a-zа-щьюяєїґ rue,uk:a-z»а-ьюяёєіїґ“ sah:a-zа-яёҕҥүһө se:a-zß-âä-öø-ÿčđıŋšŧžǥǧǩǯȟʒ
    sgs,lt:a-ząčėęįšūųž shi:a-zÀÂÄÇ-ËÎÏÔÖÙÛÜàâäç-ëîïôöùûüƐƔɛɣʷḌḍḤḥṚṛṢṣṬṭẒẓⴰ-ⵯ sk:a-záäéíóôúýčďĺľňŕšťž
    skr:ء-ؤئ-بت-غفقل-نوٹٻپڄچڈڋڑژکگڰڳںھہۃیےݙݨ smn:a-záâäčđŋšž sr:a-pr-vzćčđšžа-ик-шђј-ћџ st:a-zA-ZÈÒèòĒēŌōŠš
    sv:a-zÄÅÉÖäåéö ta:\u0b80-\u0bff te:\u0c01-౯ tg:a-zа-яёўғқҳҷӣ tk:a-zÄÇÖÜÝäçöüýĞğŇňŞşŽž tn:a-zêôš
    tt:a-zа-яёҖҗҢңҮүҺһӘәӨө tum:a-zA-ZŴŵ\u0302 udm:a-zа-яёӝӟӥӧӵ ur:ءآؤئ-بت-غفقل-نو\u0654ٹپچڈڑژکگںھہۃیے\u200b
    uz:a-z»ʻʼ“ wa:a-zâåç-êîôû"""
)

# What a trail may hold beside single letters: an apostrophe that opens no italics, the Breton c'h.
_LINK_TRAIL_WORDS: dict[str, str] = {"br": "[cC]['’]h|C['’]H", "ca": "'(?!')", "kaa": "'(?!')"}

# The default of MediaWiki, less the noncharacters that stand for markup while a page is read.
_ANY_LETTER = "a-zA-Z\u0080-\ufdcf\ufdf0-\U0010ffff"

# The letters that, right before ``[[``, belong to the link (linkPrefixCharset where linkPrefixExtension is on), as the
# inside of a character class. Other languages have no prefixes.
LINK_PREFIX_LETTERS: dict[str, str] = {
    **dict.fromkeys(
        ("ar", "ary", "arz"),
        "a-zA-Z\u0610-\u061aء-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed",
    ),
    **dict.fromkeys(("cu", "rue", "uk"), "«„"),
    "cv": '"' + _ANY_LETTER,
    **dict.fromkeys(("hy", "hyw", "ka", "lbe", "ln", "mzn", "pnb", "xmf"), _ANY_LETTER),
    "is": "a-z\\-A-ZÁÆÉÍÐÓÖÚÝÞáæéíðóöúýþ–",
    "kaa": "a-zA-Z\u0080-\u00ffİı",
    "uz": "a-zA-Z\u0080-\u00ffʻʼ„",
}

# "#REDIRECT" in each wiki's language, of its fallback languages, too; the English word works everywhere.
REDIRECT_WORDS: dict[str, tuple[str, ...]] = {
    language: tuple(words.split("|"))
    for language, words in _rows(
        """ar,arz:تحويل ast,es:redirección|redireccion
    az:istiqamətləndirmə|i̇sti̇qamətləndi̇rmə|istiqamətləndir|i̇sti̇qamətləndi̇r azb,fa:تغییر_مسیر|تغییرمسیر
    ba,cv,ru:перенаправление|перенапр be-tarask:перанакіраваньне bg:пренасочване|виж
    bn:পুনর্নির্দেশ|পুনঃর্নির্দেশ|পুনঃনির্দেশ|পুননির্দেশ br:adkas bs,hr:preusmjeri
    ca:redirecció|redireccio|redireccion ce:дӏасахьажор'|перенаправление|перенапр ckb:ڕەوانەکەر
    cs:přesměruj|presmeruj cy:ail-cyfeirio|ailgyfeirio de,gsw:weiterleitung el:ανακατευθυνση
    eo:alidirekti|alidirektu|al et:suuna eu:birzuzendu fi:ohjaus|uudelleenohjaus fr:redirection ga:athsheoladh
    gan,zh-classical,zh-min-nan:重新導向|重定向 gl:redirección|redirecionamento he:הפניה hi:पुनर्प्रेषित|अनुप्रेषित
    hu:átirányítás hy:վերահղում id:alih is:tilvísun it:rinvia|rinvio|rimando ja:転送|リダイレクト ka:გადამისამართება
    kk:айдау ko:넘겨주기 lb:viruleedung|weiterleitung lld:rinvia|rinvio|rimando|renviament lt:peradresavimas
    mg:fihodinana|redirection min:aliah|alih mk:пренасочување|види ml:തിരിച്ചുവിടുക|തിരിച്ചുവിടൽ
    mr:पुनर्निर्देशन|पुर्ननिर्देशन ms:lencong nds-nl:deurverwiezing|duurverwiezing|doorverwijzing
    nds:wiederleiden|weiterleitung nl:doorverwijzing nn:omdiriger|omdirigering no:omdirigering|omdiriger
    oc:redireccion|redirecció|redireccio|redirection pl:patrz|przekieruj|tam pnb:مڑجوڑ pt:redirecionamento
    ro:redirecteaza sh:preusmjeri|preusmeri sk:presmeruj|přesměruj sl:preusmeritev sq:ridrejto
    sr:преусмери|преусмјери sv:omdirigering ta:வழிமாற்று te:దారిమార్పు tg:равона th:เปลี่ยนทาง
    tr:yönlendirme|yönlendi̇rme|yönlendir|yönlendi̇r tt:юнәлтү|перенаправление|перенапр
    uk:перенаправлення|перенапр|перенаправление ur:رجوع_مکرر uz:yoʻnaltirish|yonaltirish vi:đổi
    wuu,zh:重定向|重新導向 yi:ווייטערפירן|הפניה"""
    ).items()
}

# The switches ``__...__`` of all languages, in lower case, with their underscores: those of MediaWiki, then those of
# the extensions that Wikipedia uses. Some Japanese ones may have wide underscores.
MAGIC_WORDS: frozenset[str] = frozenset(
    f"__{name}__"
    for name in """
    abschnitte_nicht_bearbeiten alaosalingita alltidinnehållsförteckning alltidinnhaldsliste alltidinnholdsliste
    archivedtalk archiwalnadyskusja ascundecat aucunegalerie aucunetdm aucunindex aucunliennouvellesection
    aucunsommaire başlikdönüşümüyok bdy begalerijos beredagsekc beturin bez_galerije bez_indeksa bez_izmena
    bez_izmjena bez_nove_veze_odeljka bez_sadržaja bezcc bezeditovatčást bezedycjisekcji bezgalerie bezgalerii
    bezgalerije bezgalérie bezindeksa bezindeksiranja bezizmena bezizmjena bezkazala bezkn bezkonverzenadpisu
    bezkonverzeobsahu bezks bezlinkupřidatkomentář beznovevezeodeljka bezobsahu bezpretvaranjanaslova
    bezpretvaranjasadržaja bezsadrzaja bezsadržaja bezspisu beztc bezuređivanjaodlomaka bpn bps brezgalerije
    brezkazala brezkazalavsebine brezurejanjarazdelkov capdegalaria capdegalariá capdetaula capgaleria capindex
    captaula catamagada catcachee catcudd categoriaoculta categoríaoculta catoculta chỉ_mục chỉmục cuprins
    cyswlltadrannewydd cá cágachuair daftarisi dasi deği̇şti̇ryok dimadrangolygu dimgolyguadran dimrhestrgynnwys
    dimrhg dimtaflencynnwys disambig di̇zi̇n di̇zi̇nyok doldkat düzenlemeyok eiosiomuokkausta eisisluett emsafn
    endeks endeksyok enlacecrearsección ettiq expected_unconnected_page expectshortpage expectunusedcategory
    expectunusedtemplate faraconvertirecontinut faraconvertiretitlu faracuprins faraeditsectiune faragalerie
    faraindex faralegaturasectiunenoua fcc fct fi forcarsumario forcartdc forceerinhoud forcersommaire forcertdm
    forcetoc forsirajsadržaj forsirani_sadržaj forsiranisadržaj forteazacuprins fortuindekson forzar_tdc
    forzaroíndice forzartdc forzartoc forçarsomari forçarsumário forçartaula forçartdc forçartdm forçataula ft
    galereyayoq galeriita galeri̇yok gancá ganmhírathrú ganta gantiontúnadteideal gantiontúnanábhair gantt
    geen_galerij geenic geenindex geeninhoud geeninhoudconversie geennieuwesectielink geennieuwkopjekoppeling
    geennieuwkopjeverwijzing geenpaginanaamconversie geentc geentitelconversie gi̇zli̇kat gi̇zli̇kategori̇ gøymdkat
    hakukonekielto hiddencat i ichidagilar ichidagilari ichidagilarmajburiy ichidagilaryoq indeks indekser indeksi
    indeksiga indeksiraj indeksiranje indeksita indekso indeksu indeksuj indeksyoq index indexar indexera indexieren
    indexovat indice indizieren ingabolkendring ingabolkredigering ingainnhaldsliste ingendelendring ingenindeksering
    ingeninnehållsförteckning ingeninnholdsfortegnelse ingeninnholdskonvertering ingeninnholdsliste
    ingennyseksjonslenke ingenseksjonsredigering ingentittelkonvertering ingetgalleri inhaltsverzeichnis
    inhaltsverzeichnis_erzwingen inholtverteken inhoud inhoud_dwingen inkjegalleri innehållsförteckning innhaldsliste
    innholdsfortegnelse innholdsliste inteindexera interedigerasektion intetgalleri i̇dy i̇çeri̇kdönüşümüyok
    i̇çi̇ndeki̇ler i̇çi̇ndeki̇leryok i̇çi̇ndeki̇lerzorunlu jogaleri joredaktimseksioni jotp kasxitakategorio
    kategoriaukryta kategoriefshehur kategoritersembunyi katsem kazalo kaŝitakategorio keeninholtverteken
    keenännernlink kein_index kein_inhaltsverzeichnis kein_neuer_abschnittslink kein_plus_link keine_galerie
    keine_inhaltskonvertierung keine_titelkonvertierung keinegalerie keininhaltsverzeichnis không_album
    không_chuyển_nội_dung không_chuyển_tên không_chỉ_mục không_liên_kết_mục_mới không_mục_lục không_nút_sửa_mục
    khôngalbum khôngchuyểnnộidung khôngchuyểntên khôngchỉmục khôngliênkếtmụcmới khôngmụclục khôngnútsửamục kk lans
    legaturasectiunenoua legyentartalomjegyzék legyentj liennouvellesection ligacaodenovasecao ligamseccionnovèla
    ligazóndanovasección ligaçãodenovaseção ligiloalnovasekcio linkdenovasecao linkdenovaseção linknovesekcije
    linknovogodlomka linknowejsekcji linkpřidatkomentář liên_kết_mục_mới liênkếtmụcmới lns luôn_mục_lục luônmụclục
    løyndkat mündəri̇catyox mục_lục mụclục naoeditarsecao naoindexar ncc neindeksiraj neindekso neindeksu neindexovat
    nekonvertuenhavon nekonvertutitolon nepomičnopreusmjeravanje nes neuer_abschnittslink neupravovaťsekcie
    newsectionlink ng ni nicht_indexieren nicht_indizieren niedyskusja nieindeksuj nietbewerkbaresectie
    nieuwesectiekoppeling nieuwesectielink nincsgaléria nincsindex nincsszerk nincsszerkesztés nincstartalomjegyzék
    nincstj nincsújszakaszhiv nincsújszakaszlink nirdasi nirdeks nirgal nirkodul nirkosi nirprababa nirsuba niu nkh
    nkt nnsl no_editar_sección nocc nocc_ nocontentconvert noconvertircontenido noconvertirtitulo noconvertirtítulo
    noct_ noeditarseccion noeditarsección noeditsection nogaleria nogalería nogallery noglobal noindex noindexar
    noindice nonewsectionlink nonindexar notalk notaula notc notdc notitleconvert notoc nova_veza_odeljka
    novavezaodeljka novincularanuevaseccion noviodlomakpoveznica nsl nt ntc nyseksjonslenke nyttavsnittlänk
    nãoeditarseção nãoindexar obsah pagaleri paksadaftarisi paksadasi paredaktimpjese pascapdedegalariá
    pascapdeligamseccionnovèla pascapdesomari pascapdetdm pascapdindèx patp peidetudkat pengalihanstatik
    pengalihanstatis permanente_weiterleitung petik petis piiloluokka plus_link poglavje prababa pranalabagianbaru
    primorani_sadržaj primoranisadržaj qalereyayox redireccioestatica redireccionestatica redireccióestatica
    redirecciónestática redirecionamentoestatico redirecionamentoestático redirectionarestatica redirectionstatique
    rejtettkat rejtettkategória resum sabi̇työnlendi̇rme sadrzaj sadržaj sakrivenakat sakrivenakategorija sanscc
    sansconversioncontenu sansconversiontitre sansct sb seccionnoneditabla seccionoeditable secciónoeditable
    secciónsnoneditables sectionnoneditable semcc semconverterconteudo semconverterconteúdo semconvertertitulo
    semconvertertítulo semct semeditarsecao semeditarseção semgaleria semligacaodenovasecao semligaçãodenovaseção
    semlinkdenovasecao semlinkdenovaseção semsumário semtdc senbildaro sengalerio sengalería senligiloalnovasekcio
    senredaktisekciojn senredaktisekcion seníndice sg sin_galería sin_tdc sinenlacecrearsección sisluettpakotus
    sisukord sisukordees sisukorrata sisällysluettelo skjultkategori skritakategorija skrivenakat skrivenakategorija
    skrytákat skrytákategória skrýtkat slans slns somari sommaire spis srs staticképřesměrování staticnapreusmeritev
    staticredirect statikaalidirekto statikusátirányítás statischedoorverwijzing statischeredirect
    statiskomdirigering statisticnopreusmjerenje statistomdirigering statičkopreusmerenje statičnopreusmjerenje
    stati̇kyönlendi̇rme sumario sumário t tahriryoq tanpadaftarisi tanpagaleri tanpaindeks tanpakonversiisi
    tanpakonversijudul tanpapranalabagianbaru tanpasuntinganbagian tartalomjegyzék tartiblashyoq taula tdc tdm
    thể_loại_ẩn thểloạiẩn tj toc tp turinys tvinginnholdsfortegnelse uključisadržaj uuealaosalingita uuealaosalink
    verborgencat versteckte_kategorie vincularanuevaseccion vsilikazalovsebine vynútiťobsah vždyobsah
    wartungskategorie wiesinholtverteken wymuśspis yashirinturkum yeni̇başlikbağlantisi yeni̇başlikbağlantisiyok
    zespisem állandóátirányítás índice újszakaszhiv újszakaszlink đổi_hướng_nhất_định đổihướngnhấtđịnh
    δεσμοσνεασενοτητας ευρετηριο κρυφηκατηγορια μεπινακαπεριεχομενων μεππ πινακασπεριεχομενων ππ στατικηανακατευθυνση
    χωρισεπεξενοτ χωρισεπεξεργασιαενοτητων χωρισευρετηριο χωρισμετατροπηπεριχομενου χωρισμετατροπητιτλου
    χωρισπινακαπεριεχομενων χωρισπινακοθηκη χωρισππ аабау атауалмастырғызбау башлыкюк без_галереи без_галереї
    без_галерије без_змісту без_измена без_измјена без_индекса без_нове_везе_одељка без_огл без_оглавления
    без_перетворення_заголовку без_перетворення_тексту без_посилання_на_новий_розділ без_преобразования_заголовка
    без_преобразования_текста без_редагув_розділу без_редактиране_на_раздели без_редактирования_раздела без_садржаја
    без_ссылки_на_новый_раздел без_уредување_на_поднаслови без_індексу безврскановподнаслов безгалерия безгалерија
    безгалерије безизмена безизмјена безиндекс безиндекса безиндексиране безкн безкс безновевезеодељка
    безпретворањенаслов безпретворањесодржина безсадржаја безсодржина безсъдържание безцц бүлекүзгәртүюк
    бөлідімөндемеу бөлімөндеткізбеу врскановподнаслов връзка_за_нов_раздел жасырынсанат жаңабөлімсілтемесі зміст
    индекс индексиране индекссыз мабау мазмұндатқызу мазмұнсыз мазмұны матжоқ мағлұматалмастырғызбау
    мағлұматынтүрлендіргізбеу мзмн мсыз мқызу нова_веза_одељка новавезаодељка обов_зміст обяз_огл
    обязательное_оглавление огл оглавление посилання_на_новий_розділ појаснување приморани_садржај приморанисадржај
    прихов_кат прихована_категорія садржај сакривенакат скриенакат скриенакатегорија скритакатегория
    скрытая_категория содржина сосодржина ссылка_на_новый_раздел статическое_перенаправление статичкопреусмерење
    статичне_перенаправлення статичнопренасочување съдържание съссъдържание татжоқ тақырыпатынтүрлендіргізбеу
    форсирани_садржај форсиранисадржај эчтелек індекс қоймасыз қсыз առանց_բաժնի_խմբագրման առանց_բով
    առանց_պարունակության_փոփոխման առանց_սրահի առանց_վերնագրի_փոփոխման բով հղում_նոր_բաժնի_վրա ստիպել_բով אינהאלט
    באהאלטענע_קאט באהאלטענע_קאטעגאריע הפניה_קבועה חייב_תוכן חייב_תוכן_עניינים יצירת_הערה לא_לחיפוש לחיפוש ללא_גלריה
    ללא_המרת_כותרת ללא_המרת_תוכן ללא_יצירת_הערה ללא_עריכה ללא_תוכן ללא_תוכן_עניינים נישט_רעדאקטירן קטגוריה_מוסתרת
    קיין_אינהאלט_טאבעלע קיין_גאלעריע תוכן תוכן_עניינים اتوقع_تصنيف_مش_مستخدم اشاریہ اشاریہ_نہیں بافهرست بافہرست
    بخش\u200cجدید بی\u200cبخش بی\u200cفهرست بی\u200cنمایه بی\u200cنگارخانه بی\u200cپیوندبخش
    بی\u200cپیوند\u200cبخش\u200cجدید تحويلة_إستاتيكية تحويلة_ساكنة تحويله_إستاتيكيه تحويله_ساكنه تصنيف_مخفي
    تغییرمسیرثابت توقع_تصنيف_غير_مستخدم ربط_نیا_قطعہ ربط_نیا_قطعہ_نہیں رده\u200cپنهان ساکن_رجوع_مکرر
    عنوان\u200cتبدیل\u200cنشده فهرس فهرسة فهرست فہرست فہرست_نہیں لا_وصلة_قسم_جديد لاتحريرقسم لاتحويل_عنوان
    لاتحويل_محتوى لاتع لاتم لافهرس لافهرسة لامعرض لصق_فهرس محتواتبدیل\u200cنشده من_غير_تحريرقسم من_غير_تحويل_محتوى
    من_غير_فهرس من_غير_معرض من_غير_وصلة_قسم_جديد من_غيرتحويل_عنوان منتقلی_عنوان_نہیں منتقلی_مواد_نہیں ناترمیم_قطعہ
    نافہرست نمایه نگارخانہ_نہیں وصلة_قسم_جديد پوشیدہ_زمرہ अनुक्रम अनुक्रम_दिखाएँ अनुक्रमणिका अनुक्रमणिकानको
    अनुक्रमणिकाहवीच अनुक्रमीत अनुभाग_सम्पादन_नहीं अविचलपुर्ननिर्देश असूचीबद्ध क्रमीत गैलरी_नहीं छिपी_श्रेणी
    छुपी_श्रेणी नवविभागदुवा प्रदर्शननको बिना_अनुक्रम वर्गलपवा विनाअनुक्रमीत विनाक्रमीत विनानवविभागदुवा विनामजकुरबदल
    विनामब विनाशीब विनाशीर्षकबदल विभागअसंपादनक्षम विषय_जोड़े_कड़ी_रहित विषय_जोड़ें_कड़ी विषय_सूची विषय_सूची_दिखाएँ
    विषय_सूची_दिखायें विषय_सूची_हीन सूचीबद्ध स्थिर_अनुप्रेषण स्थिर_पुनर्प्रेषण কোন_গ্যালারি_নয় কোন_গ্যালারী_নয়
    কোন_নতুন_অনুচ্ছেদের_লিঙ্ক_নয় কোন_নতুন_অনুচ্ছেদের_সংযোগ_নয় কোন_নির্ঘণ্ট_নয় কোন_বিষয়বস্তু_রূপান্তরকারী_নয়
    কোন_বিষয়বস্তুর_ছক_নয় কোন_বিষয়বস্তুর_টেবিল_নয় কোন_শিরোনাম_রূপান্তরকারী_নয় কোন_সম্পাদনা_অনুচ্ছেদ_নয়
    কোনগ্যালারিনয় কোনগ্যালারীনয় কোননতুনঅনুচ্ছেদেরলিঙ্কনয় কোননতুনঅনুচ্ছেদেরসংযোগনয় কোননির্ঘণ্টনয়
    কোনবিষয়বস্তুরছকনয় কোনবিষয়বস্তুরটেবিলনয় কোনবিষয়বস্তুরূপান্তরকারীনয় কোনশিরোনামরূপান্তরকারীনয়
    কোনসম্পাদনাঅনুচ্ছেদনয় নতুন_অনুচ্ছেদের_লিঙ্ক নতুন_অনুচ্ছেদের_সংযোগ নতুনঅনুচ্ছেদেরলিঙ্ক নতুনঅনুচ্ছেদেরসংযোগ
    নির্ঘণ্ট নির্ঘণ্টনয় বিষয়বস্তুর_ছক বিষয়বস্তুর_টেবিল বিষয়বস্তুরছক বিষয়বস্তুরটেবিল লুকানো_বিষয়শ্রেণী
    লুকানোবিষয়শ্রেণী লুকায়িতবিষয়শ্রেণী লুক্কায়িত_বিষয়শ্রেণী লুক্কায়িতবিষয়শ্রেণী স্থির_পুনর্নির্দেশ
    স্থিরপুনর্নির্দেশ విషయసూచిక విషయసూచికవద్దు ഉള്ളടക്കം ഉള്ളടക്കംഇടുക ഉള്ളടക്കംമാറ്റേണ്ട ഉള്ളടക്കംവേണ്ട
    ചിത്രസഞ്ചയംവേണ്ട തലക്കെട്ട്മാറ്റേണ്ട പുതിയഖണ്ഡിക്കണ്ണി പുതിയഖണ്ഡിക്കണ്ണിവേണ്ട പുതിയവിഭാഗംകണ്ണി
    പുതിയവിഭാഗംകണ്ണിവേണ്ട മറഞ്ഞിരിക്കുംവർഗ്ഗം സംശോധിക്കേണ്ട സൂചിക സൂചികവേണ്ട സ്ഥിരസ്ഥിതതിരിച്ചുവിടൽ ไม่มีสารบัญ
    ไม่มีแกลเลอรี่ ไม่มีแก้เฉพาะส่วน უგალერეო インデックス インデックス拒否 カテゴリ非表示 カテ非表示
    ギャラリー非表示 セクション編集非表示 タイトルコンバート拒否 タイトル変換無効 タイトル非表示 不轉換內容
    不轉換標題 不转换内容 不转换标题 二重転送修正無効 二重転送解消無効 内容変換抑制 内容変換無効 強制目錄 强显目录
    新しいセクションリンク 新しいセクションリンク非表示 新しい節リンク 新しい節リンク非表示 新セクションリンク
    新セクションリンク非表示 新段落链接 无图库 无新段落链接 无段落编辑 无目录 无索引 无编辑段落 無圖庫 無段落編輯
    無目錄 目录 目次 目次強制 目次非表示 目錄 節編集非表示 索引 隐藏分类 隠しカテゴリ 隱藏分類 静态重定向 静的転送
    靜態重新導向 非表示カテ 갤러리숨김 내변안함 내변없음 내용변환안함 내용변환없음 넘겨주기고정 단락편집숨김 동음이의
    목차 목차보임 목차숨김 목차표시 문단편집숨김 부분편집숨김 새글쓰기 새글쓰기숨기기 새문단쓰기 새문단쓰기숨기기
    색인 색인거부 색인안함 숨은분류 제목변환안함 제목변환없음 제변안함 제변없음 화랑숨김""".split()
) | frozenset(
    f"＿＿{name}＿＿"
    for name in """
    インデックス インデックス拒否 ギャラリー非表示 セクション編集非表示 タイトルコンバート拒否 二重転送修正無効
    二重転送解消無効 内容変換抑制 新しいセクションリンク 新しいセクションリンク非表示 新セクションリンク
    新セクションリンク非表示 目次 目次強制 目次非表示""".split()
)

FILE, CATEGORY = 6, 14

# The local names of the File and Category namespaces, their short, older and foreign spellings, which <siteinfo>
# does not list; here "_" is a blank, and the files' names come before the categories'.
NAMESPACE_ALIASES: dict[str, dict[str, int]] = {
    language: {
        name.replace("_", " "): key
        for key, part in zip((FILE, CATEGORY), names.split(":"), strict=True)
        for name in part.split("|")
        if name
    }
    for language, names in _rows(
        """ar,arz:ملف|صورة:تصنيف ast:ficheru|imaxe|imaxen|archivu|imagen:categoría az:fayl|şəkil|fl:kateqoriya|kat
    azb:فایل|تصویر:بؤلمه ba:файл|рәсем|изображение:категория|төркөм be,be-tarask:файл|выява:катэгорыя
    bg:файл|картинка:категория bn:চিত্র:বিষয়শ্রেণী br:restr|skeudenn:rummad bs:datoteka|slika:kategorija
    ca:fitxer|imatge:categoria ce:файл|сурт|хlум|изображение:категори|тоба|кадегар ceb:payl|imahen:kategoriya
    ckb:پەڕگە:پۆل|پ cs:soubor|obrázok:kategorie cv:ӳкерчĕк|изображение:категори cy:delwedd:categori
    da:fil|billede:kategori de,gsw:datei|bild:kategorie el:αρχείο|εικόνα:κατηγορία eo:dosiero:kategorio
    es:archivo|imagen:categoría|cat et:fail|pilt:kategooria eu:fitxategi|irudi:kategoria fa:پرونده|تصویر:رده
    fi:tiedosto|kuva:luokka fr:fichier:catégorie ga:íomhá:catagóir|rang
    gan:文檔|檔案|文件|圖像|圖片|档案|图像|图片:分類|分类|cat gl:ficheiro|imaxe|imagem|arquivo:categoría
    he:קובץ|תמונה|קו:קטגוריה|קט hi:चित्र:श्रेणी|श्र hr:datoteka|slika|dt:kategorija|kt|ct hu:fájl|kép:kategória
    hy:պատկեր:կատեգորիա id,min:berkas|gambar:kategori is:mynd:flokkur it:immagine:categoria|cat
    ja:ファイル|画像:カテゴリ ka:ფაილი|სურათი:კატეგორია kk:сурет|swret|سۋرەت:санат|sanat|سانات ko:파일|그림:분류
    la:fasciculus|imago:categoria lb:fichier|bild:kategorie lld:immagine:categoria lt:vaizdas:kategorija
    lv:attēls:kategorija mg:sary:sokajy|catégorie mk:податотека|слика:категорија
    ml:പ്രമാണം|ചി|ചിത്രം|പ്ര:വർഗ്ഗം|വി|വ|വിഭാഗം mr:चित्र:वर्ग ms:fail|imej:kategori my:ဖိုင်:ကဏ္ဍ
    nds-nl:bestaand|ofbeelding|afbeelding:kategorie|categorie|kattegerie nds:bild|datei:kategorie
    nl:bestand|afbeelding:categorie no,nn:fil|bilde:kategori oc:fichièr|imatge:categoria pl:plik|grafika:kategoria
    pnb:فائل|تصویر:گٹھ pt:ficheiro|imagem|arquivo:categoria ro:fișier|imagine|fişier:categorie
    ru:файл|изображение:категория|к sh:datoteka|slika|слика|dt|дт:kategorija|категорија|kat|кат|kt|кт
    sk:súbor|obrázok:kategória sl:slika:kategorija sq:skeda|figura:kategoria|kategori
    sr:датотека|datoteka|slika|слика:категорија|kategorija sv:fil|bild:kategori sw:faili|picha:jamii
    ta:படிமம்:பகுப்பு te:దస్త్రం|బొమ్మ|ఫైలు:వర్గం tg:акс:гурӯҳ th:ไฟล์|ภาพ:หมวดหมู่ tr:dosya|resim:kategori|kat
    tt:файл|изображение|рәсем|räsem:төркем|категория|törkem uk:файл|зображення|изображение:категорія|категория
    ur:فائل|تصویر|ملف:زمرہ uz:fayl|tasvir:turkum|kategoriya vi:tập_tin|hình:thể_loại war:paypay|fayl:kaarangay
    wuu:文件|档案|图像|图片|檔案|圖像|圖片:分类|分類 yi:טעקע|בילד|תמונה:קאַטעגאָריע|קאטעגאריע
    yue:文件|檔|檔案|档|档案|圖|圖像|图|图像:分類|類|类|分类
    zh-classical:檔案|文件|圖像|圖片|档案|图像|图片:分類|分类|cat
    zh-min-nan:tóng-àn|文件|檔案|圖像|圖片|档案|图像|图片:lūi-pia̍t|分類|分类
    zh:文件|檔案|档案|图像|图片|圖像|圖片|f:分类|分類|cat"""
    ).items()
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

# Codes of a wiki's scripts and regions (MediaWiki's includes/language/converters), in the order in which it looks
# for what to show a reader who has chosen none.
VARIANTS: dict[str, tuple[str, ...]] = {
    codes.split()[0]: tuple(codes.split())
    for codes in (
        "ban ban-bali ban-x-dharma ban-x-palmleaf ban-x-pku",
        "crh crh-latn crh-cyrl",
        "gan gan-hans gan-hant",
        "iu ike-cans ike-latn",
        "kk kk-cyrl kk-latn kk-arab kk-kz kk-tr kk-cn",
        "ku ku-latn ku-arab",
        "mni mni-beng",
        "sh sh-latn sh-cyrl",
        "shi shi-latn shi-tfng",
        "sr sr-ec sr-el",
        "tg tg-latn",
        "tly tly-cyrl",
        "uz uz-latn uz-cyrl",
        "wuu wuu-hans wuu-hant",
        "yue yue-hant yue-hans",
        "zgh zgh-latn",
        "zh zh-hans zh-hant zh-cn zh-tw zh-hk zh-sg zh-mo zh-my",
    )
}

# Other names of these codes.
VARIANT_NAMES: dict[str, str] = _rows(
    """sr-cyrl:sr-ec sr-latn:sr-el zh-hans-cn:zh-cn zh-hans-my:zh-my zh-hans-sg:zh-sg zh-hant-hk:zh-hk
    zh-hant-mo:zh-mo zh-hant-tw:zh-tw"""
)

# Codes of a wiki beside the one under which the tables file it.
_OTHER_CODES: dict[str, str] = _rows(
    """als:gsw bat-smg:sgs be-x-old:be-tarask cbk:cbk-zam egl:eml fiu-vro:vro lzh:zh-classical nan:zh-min-nan nb:no
    nrf:nrm roa-rup:rup simple:en zh-yue:yue"""
)


def base_language(language: str) -> str:
    """The code under which the tables file a language: "simple" is English, "zh-hans" is "zh"."""
    code = language.lower().replace("_", "-")
    if code in LINK_TRAIL_LETTERS:
        return code
    return _OTHER_CODES.get(code, code.split("-")[0])


@cache
def link_trail(language: str) -> re.Pattern[str]:
    """The pattern of the letters after a link that belong to it; it matches the empty string, too."""
    code = base_language(language)
    letters = LINK_TRAIL_LETTERS.get(code, "a-z")
    if code in _LINK_TRAIL_WORDS:
        return re.compile(f"(?:{_LINK_TRAIL_WORDS[code]}|[{letters}])*")
    return re.compile(f"[{letters}]*" if letters else "")


def link_prefix(language: str) -> str:
    """The letters before a link that belong to it, as the inside of a character class; "" for none."""
    return LINK_PREFIX_LETTERS.get(base_language(language), "")
