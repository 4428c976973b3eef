# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Upper and lower case of names from other languages, and of rare ones."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn

_ACCENTED = """José María Zoë Chloé André Renée François Françoise Müller Jürgen Björn Göran Åsa Søren Jørgen Łukasz Michał Małgorzata Žižek Šárka Jiří Dvořák Ángel Íñigo Begoña Peña Muñoz Núñez Gómez Pérez Sánchez Rodríguez Hernández
Özil Çelik Şahin Gül Yıldız Ömer Ümit Éva László Ágnes Zoltán Győző Đorđe Nikolić Petrović Jokić Božena Růžena Čapek Škoda Žofia Łódź Kraków Gdańsk Wrocław Málaga Córdoba León Zürich München Köln Düsseldorf Tromsø Malmö Göteborg Århus
Reykjavík Kópavogur Győr Pécs São Paulo João Antônio Conceição Simões Galvão Luís Inês Mónica Raúl Iván Joaquín Agustín Bogotá Medellín Cancún Perú México Québec Orléans Besançon Genève Noël Gaël Anaïs Loïc Héloïse Aurélie Benoît Jérôme
Thérèse Hélène Hervé Rémi Émile Étienne Eugène Brontë Beyoncé Dalí Miró Gaudí Buñuel Almodóvar Núria Àngels Lluís Niccolò Nicolò Cesarò Forlì Ståle Håkon Pål Märta Jönköping Växjö Järvinen Mäkinen Hämäläinen Koskinen Õnne Jüri Tõnu Bērziņš
Kārlis Jānis Līga Rīga Šiauliai Žemaitė Ionuț Brâncuși Ștefan Timișoara Iași Nguyễn Trần Phạm Đặng Hồ Việt Huế Ōsaka Kyūshū""".split()
_PLAIN = """Siobhan Niamh Saoirse Aoife Caoimhe Eoghan Krzysztof Agnieszka Zbigniew Wojciech Szczepan Grzegorz Tchaikovsky Dostoyevsky Kieslowski Brzezinski Xiuying Zhang Xue Qiang Nguyen Phuong Huynh Thuy Nkechi Chukwu Oluwaseun Adebayo Ngozi Kwame Nkrumah
Mbappe Ndiaye Ouedraogo Traore Mohammed Abdulrahman Khadija Yusuf Rashid Zaynab Nasreddin Subramanian Krishnan Venkatesh Priyanka Lakshmi Rajesh Tanaka Yamamoto Takeshi Hiroshi Ryusuke Shinji Kazuo Eyjafjallajokull Sigurdsson Thorvaldsson Bjarne Jorgensen
Vandenberg Vandermeer Dijkstra Hoogeveen Schwarzenegger Schneider Wittgenstein Nietzsche Kowalczyk Wisniewska Horvath Szabo Nagy Papadopoulos Giannis Antetokounmpo Konstantinos Eleftheria Bianchi Giuseppe Guglielmo Francesca Quintanilla Echeverria Etxeberria
Xabier Iker Gwyneth Llewellyn Rhys O'Brien O'Connor D'Angelo McGregor MacDonald Abebe Tesfaye Haile Mulugeta Batbayar Sukarno Widodo Mahmoud Farouk Nizhny Vladivostok Svetlana Yevgeny Anastasiya Bjork Agnetha Lagerkvist""".split()
_OTHER = "Иван Мария Сергей Ольга Москва Анна Дмитрий Елена Борис Наташа Александр Юрий Елена Киев Софія Γιώργος Μαρία Ελένη Νίκος Αθήνα Σοφία Κώστας Παύλος Δημήτρης".split()
_LETTERS = "é è ê á à â ä å ã ó ò ô ö õ ø ú ù û ü í ì î ï ñ ç š ž č ř ý ő ű ş ł ń ś ź ż ć ę ą đ ě ů ā ē ī ō ū æ œ".split()
_CONSONANTS = (
    "b c d f g h j k l m n p r s t v w x z th sch tch kh zh ng nd rk lm st dr gr kr cz sz ck bj hv".split()
)
_VOWELS = "a e i o u y ai au ei ou ie oa ue".split()


def _made_up(rng: Random) -> str:
    """A name of syllables as in no one language, with an accent for the most part."""
    word = "".join(rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.choice((1, 2, 2, 3))))
    word += rng.choice(["", "", rng.choice(_CONSONANTS)])
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        at = rng.randrange(len(word))
        word = word[:at] + rng.choice(_LETTERS) + word[at + 1 :]
    return word.capitalize()


def name(rng: Random) -> str:
    """A name of a person or a place."""
    draw = rng.random()
    if draw < 0.35:
        found = rng.choice(_ACCENTED)
    elif draw < 0.6:
        found = rng.choice(_PLAIN)
    elif draw < 0.66:
        found = rng.choice(_OTHER)
    else:
        found = _made_up(rng)
    return f"{found} {rng.choice([rng.choice(_ACCENTED), rng.choice(_PLAIN), _made_up(rng)])}" if rng.random() < 0.25 else found  # fmt: skip


_UPPER = "{in|in|with|using} {capital letters|capitals|upper case|uppercase|all caps|caps|block letters}"
_LOWER = "{in|in|with|using} {small letters|lower case|lowercase|lower-case letters}"
_AROUND = ["$t", "$t", "$t", "$t", "$t", "$t", "{Hello|hello|Dear|dear} $t", "$t {and|or} $u", "{my|My} name is $t", "{I|we} live in $t", "$t is here", "{good morning|Good night|thank you}, $t", "{Mr.|Mrs.|Dr.} $t", "$t, {please come|where are you|wait}"]  # fmt: skip


def foreign_case(rng: Random) -> Turn:
    """A foreign or rare name, alone or among other words, in upper or lower case."""
    text = rng.choice(_AROUND)
    text = write(rng, text.replace("$t", "\x01").replace("$u", "\x02"))
    text = text.replace("\x01", name(rng)).replace("\x02", name(rng))
    upper = rng.random() < 0.75
    given = text if upper else rng.choice([text, text.upper()])
    answer = text.upper() if upper else text.lower()
    how = _UPPER if upper else _LOWER
    to = (
        "{upper case|uppercase|capitals|capital letters}" if upper else "{lower case|lowercase|small letters}"
    )
    made = (
        "{uppercase|upper case|all caps|capitalize fully|shout}"
        if upper
        else "{lowercase|lower case|small letters}"
    )
    ask = write(rng, rng.choice([
        f"{{Write|Say|Type|Print|Repeat|Spell out|Put|Show me|Give me}} {{the name |the word |}}\x01 {how}{{.|, please.|}}", f"{{Convert|Change|Turn|Transform|Make}} \x01 {{to|into}} {to}{{.|}}", f"{{What is|What's}} \x01 {how}?",
        f"{{Write|Put|Type}} {{this|this name|the following}} {how}: \x01", f"{{Convert|Change}} {{this |it |}}to {to}: \x01", f"{made}: \x01", f"\x01 {how}{{.|, please.|?|}}", f"{{How do you write|How would|How does}} \x01 {{look |}}{how}?", f"{{Can|Could}} you {{write|put|type}} \x01 {how}?", f"{{I need|I want|Give me}} \x01 {how}.",
    ]))  # fmt: skip
    ask = (ask[0].upper() + ask[1:] if rng.random() < 0.8 and ask[0] != "\x01" else ask).replace(
        "How would \x01 {look", "How would \x01 {look"
    )
    quoted = rng.choice([given, given, given, f'"{given}"'])
    return Turn("case", ask.replace("\x01", quoted), answer, f"case {ask.lower()} {given}")
