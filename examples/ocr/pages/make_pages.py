#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Renders the sample pages and their ground truth, beside this script.

Needs Pillow and these fonts (Debian: python3-pil fonts-dejavu-core fonts-dejavu-extra fonts-liberation
fonts-wqy-microhei fonts-arphic-ukai). The same versions give the same pages; the texts were written for this purpose.
"""

import math
import pathlib
import random

from PIL import Image, ImageDraw, ImageFilter, ImageFont

HERE = pathlib.Path(__file__).resolve().parent
FONTS = "/usr/share/fonts/truetype/"
SANS = FONTS + "dejavu/DejaVuSans.ttf"
SANS_BOLD = FONTS + "dejavu/DejaVuSans-Bold.ttf"
SERIF = FONTS + "dejavu/DejaVuSerif.ttf"
SERIF_ITALIC = FONTS + "dejavu/DejaVuSerif-Italic.ttf"
LIBERATION = FONTS + "liberation/LiberationSans-Regular.ttf"
NARROW = FONTS + "liberation/LiberationSansNarrow-Regular.ttf"
TIMES = FONTS + "liberation/LiberationSerif-Regular.ttf"
MONO = FONTS + "liberation/LiberationMono-Regular.ttf"
MICROHEI = FONTS + "wqy/wqy-microhei.ttc"
KAI = FONTS + "arphic/ukai.ttc"

ORCHARD = """
The Orchard Behind the Mill
In the third week of April the pear trees behind the old mill
begin to flower, and for nine or ten days nobody in the village
talks about anything else. Children count the bees, grown men
stop on the bridge, and the baker closes an hour early.
My aunt kept a notebook about it for thirty years. She wrote
down the date of the first open bud, the depth of the stream
and the name of whoever brought her the news that morning.
When she gave the notebook to me, she had left two pages empty
on purpose. One was for the frost, she said, and one for you.
"""

LETTER = """
Dear Marlene,
thank you for the parcel, which came on Tuesday in spite of
the snow. The lamp works, the jam has survived and the map is
already hanging above the kitchen table, where we can argue
about it during breakfast. Jonas insists that the path along
the river is shorter; I still prefer the one through the wood.
Do come in June if you can. The spare room is dry again, and
the neighbours have promised to keep their rooster indoors.
With love from all of us, and a kiss for the dog,
Henrietta
"""

INVENTORY = """
WAREHOUSE 7   STOCK LIST   2026-03-14
item 00418   brass hinge 60 mm      1240 pcs    0.85
item 00533   oak board 18 x 200       96 pcs   12.40
item 00719   wood screw 4 x 35      8500 pcs    0.04
item 01022   linseed oil 5 l          31 can   27.90
item 01107   sanding disc P120       640 pcs    0.62
item 01364   door handle, black       58 pcs   19.75
item 01590   felt pad 22 mm         2200 pcs    0.09
item 01871   work gloves size 9      144 pair   3.30
checked by: R. Okafor     next count: 2026-06-30
"""

TEA = """
山里的茶园
清晨五点，雾还没有散，采茶的人已经上山了。
她们背着竹篮，一边走一边小声说话。
春天的第一批叶子最嫩，只能用手慢慢地采。
中午以前，新茶要送到村口的小屋里晾干。
老师傅看颜色，闻香味，从来不用钟表。
他说水要用山上的泉水，火不能太大。
傍晚下了一场小雨，大家坐在门口喝茶。
第二天早上，卡车开到城里去，路上要走三个小时。
"""

NOTICE = """
图书馆通知
开放时间：星期一到星期五 9:00-18:00
星期六 10:00-16:00，星期日休息
电话：0571-8830 2647
Reading room: second floor, 84 seats
请保持安静，不要带食物进入阅览室。
借书证每年更新一次，费用是 20 元。
New books arrive every Thursday afternoon.
"""

POSTER = """
SUMMER NIGHT MARKET
Friday 19 June, from 17:30 until late
60 stalls, live music and a lantern walk
Old Harbour Square, Gate C
Free entry. Bring your own cup!
Tram 4 and 11 run all night
"""

RECIPE = """
Lentil soup for six
Heat four spoons of olive oil in a heavy pot. Add two chopped
onions, three carrots and a stick of celery, and let them soften
for about ten minutes over a low flame. Stir in 400 g of brown
lentils, one bay leaf, half a spoon of cumin and 1.8 litres of
water. Simmer for 45 minutes without a lid. Crush a quarter of
the lentils against the side of the pot, season with salt and the
juice of one lemon, and serve with toasted bread and plain yoghurt.
"""

LOG = """
Log of the survey boat Kittiwake, sheet 23
06:10 left the pier, wind north-west 3, sea calm, visibility good
07:45 first sounding at station A4, depth 38.6 m, water 9.2 degrees
08:20 station A5, depth 41.3 m; rope fouled, freed after 12 minutes
09:55 two porpoises to starboard, moving east
11:30 station B1, depth 57.0 m, sample bottle 17 lost, spare used
13:15 engine stopped to clean the fuel filter, restarted at 13:40
15:05 station B3, depth 62.8 m, bottom of fine grey sand
16:50 back at the pier, 9 samples handed to the laboratory
"""

QUESTIONS = """
Questions for the museum quiz
1. Which of the three clocks in the hall is the oldest?
2. How many windows does the model of the lighthouse have?
3. What did the miller carry home in his left hand?
4. Who painted the small portrait next to the staircase?
5. Find the map of 1742. Which island is missing on it?
6. The iron chest has five locks. How many keys are shown?
Write your answers on the back and drop the sheet into the
green box near the exit before Sunday, 4 October.
"""

GARDEN = """
Plan for the school garden, spring term
Bed one is for radishes and lettuce, sown on 2 March and again
three weeks later. Bed two gets broad beans, with strings along
the fence. Bed three stays empty until the nights are warmer;
then come 24 tomato plants from the greenhouse of Mr Adeyemi.
Every class waters on its own weekday. Tools go back to the
shed, handles up, and the tap is closed by whoever leaves last.
Wer im Mai mitmacht, darf im Juli ernten: Bohnen und Salat.
"""


def gradient(size, first, second):
    """From one colour at the top left to another at the bottom right."""
    picture = Image.new("RGB", (2, 2))
    middle = tuple((a + b) // 2 for a, b in zip(first, second))
    picture.putdata([first, middle, middle, second])
    return picture.resize(size, Image.BILINEAR)


def add_noise(picture, strength, seed):
    """Blends in uniform grey noise; 0 leaves the picture as it is, 1 leaves nothing of it."""
    rng = random.Random(seed)
    noise = Image.frombytes("L", picture.size, rng.randbytes(picture.width * picture.height)).convert("RGB")
    return Image.blend(picture, noise, strength)


def render(name, text, fonts, size, background, ink, *, margin=40, leading=1.5, angle=0.0, noise=0.0, blur=0.0,
           upside_down=False, extension="png", quality=80):
    """fonts: (path, pixels, index) for the first line and for the others. background: colour, or two for a gradient."""
    lines = text.strip("\n").split("\n")
    picture = gradient(size, *background) if isinstance(background[0], tuple) else Image.new("RGB", size, background)
    draw = ImageDraw.Draw(picture)
    y = margin
    for k, line in enumerate(lines):
        path, pixels = fonts[min(k, len(fonts) - 1)]
        draw.text((margin, y), line, font=ImageFont.truetype(path, pixels), fill=ink)
        y += round(pixels * leading)
    assert y <= size[1], f"{name}: the text needs {y} rows"
    if angle:
        edge = background[0] if isinstance(background[0], tuple) else background
        picture = picture.rotate(angle, Image.BICUBIC, expand=True, fillcolor=edge)
    if blur:
        picture = picture.filter(ImageFilter.GaussianBlur(blur))
    if noise:
        picture = add_noise(picture, noise, seed=len(text))
    if upside_down:
        picture = picture.transpose(Image.ROTATE_180)
    path = HERE / f"{name}.{extension}"
    if extension == "png":
        picture.quantize(32, dither=Image.Dither.NONE).save(path, optimize=True)
    else:
        picture.save(path, quality=quality, optimize=True)
    (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path.stat().st_size


def main():
    white, black = (255, 255, 255), (0, 0, 0)
    evening = ((120, 20, 60), (30, 30, 110))
    sizes = [
        render("01-orchard", ORCHARD, [(SERIF, 34), (SERIF, 22)], (860, 460), white, black),
        render("02-letter", LETTER, [(SERIF_ITALIC, 24)], (860, 470), (250, 244, 226), (40, 36, 90), angle=2.0),
        render("03-inventory", INVENTORY, [(MONO, 24)], (900, 460), (232, 240, 232), (20, 20, 20)),
        render("04-tea", TEA, [(KAI, 44), (KAI, 32)], (820, 560), white, black),
        render("05-notice", NOTICE, [(MICROHEI, 46), (MICROHEI, 28)], (720, 460), (205, 224, 250), (10, 40, 110),
               angle=-1.5, extension="jpg"),
        render("06-poster", POSTER, [(SANS_BOLD, 60), (SANS, 38)], (900, 480), evening, (255, 236, 150),
               extension="jpg"),
        render("07-recipe", RECIPE, [(TIMES, 36), (TIMES, 27)], (860, 430), (244, 244, 240), (60, 50, 40),
               noise=0.22, blur=0.6, extension="jpg", quality=60),
        render("08-log", LOG, [(NARROW, 26)], (820, 440), (255, 249, 196), (70, 20, 20), angle=-3.0, extension="jpg"),
        render("09-questions", QUESTIONS, [(SANS_BOLD, 28), (LIBERATION, 24)], (820, 430), (224, 224, 224),
               (10, 80, 50), upside_down=True),
        render("10-garden", GARDEN, [(SANS, 30), (SANS, 23)], (840, 420), (30, 60, 40), (240, 240, 220),
               angle=1.0, noise=0.08, extension="jpg", quality=75),
    ]
    characters = sum(len("".join(p.read_text(encoding="utf-8").split())) for p in HERE.glob("*.txt"))
    print(f"{len(sizes)} pages, {characters} characters without white space, {math.ceil(sum(sizes) / 1024)} KiB")


if __name__ == "__main__":
    main()
