"""A drawing of a state of Press Your Luck: the board around the players' desks.

The squares run clockwise from the top left, six across and five down, numbered as in the file. A
board of outcomes shows the outcomes, the likeliest first. `spin_names` names the outcomes of a
spin: ``whammy``, ``$2,500``, ``$750 and a spin``, in the units of the solve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.board import (
    Leaf,
    PressYourLuckBoard,
    outcome_distribution,
)
from luckbase.solver.games.press_your_luck.outcomes import MAY_LOSE, PAYS, WHAMMY, Effect, Slide
from luckbase.solver.games.press_your_luck.rules import (
    FIELDS,
    PASSED,
    PLAY,
    WHAMMIES,
    board_of,
    by_field,
    effect_name,
    player_up,
)
from luckbase.solver.scene import (
    BAD,
    GONE,
    GOOD,
    QUIET,
    UP,
    Box,
    Counter,
    Group,
    Scene,
    Shape,
    Words,
    fitting,
    listed,
)
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many

WIDE, HIGH, ACROSS, DOWN = 110.0, 88.0, 6, 5
"""The size of a square in units; the board in squares."""
RING = (
    *((x, 0) for x in range(ACROSS)), *((ACROSS - 1, y) for y in range(1, DOWN)),
    *((x, DOWN - 1) for x in reversed(range(ACROSS - 1))),
    *((0, y) for y in reversed(range(1, DOWN - 1))),
)  # fmt: skip
"""The position of each square on the board, clockwise from the top left."""
SHOWN = [3] * 18
"""Slides on each square of a board drawn like the show's; other boards are lists of outcomes."""
DESK, DESK_HIGH = 134.0, 240.0  # width and height of a desk, in units
OUTCOME_HIGH, MAX_SHOWN = 52.0, 18
"""Height of the box of an outcome, in units; the most outcomes that are shown."""
PIECE = 24.0  # width of a spin that is drawn as a piece; a desk shows as many as fit


def drawing(game: Game) -> Drawing:
    """Return the drawing of a board's states and the names of its spins."""
    board = board_of(game)
    prize = f", a prize as ${board.prize_value:,}" if board.prize_value else ""
    note = f"Amounts count in steps of ${board.solve.score_unit:,}, rounded, halves up{prize}."
    # Once for each game: comparing boards takes longer than drawing the rest.
    around, slides = cache(partial(_around, board)), cache(partial(_slides, board))
    return Drawing(
        partial(draw, board, around), partial(spin_names, game, slides), note=note,
        backdrop=lambda: around()[0],
    )  # fmt: skip


Around = tuple[Group, float, float]
"""The shapes around the desks, the y at which the desks begin, and the total height."""
Lists = list[tuple[Effect, ...]]
"""Lists of effects, of each of which the player up takes one."""


def draw(board: PressYourLuckBoard, around: Callable[[], Around], values: Ints) -> Scene:
    """Draw the board and the desks; values (fields,) in dollars."""
    numbers, players = values.tolist(), len(values) // FIELDS
    scores, earned, passed, whammies = (numbers[i * players :][:players] for i in range(FIELDS))
    max_whammies = board.rules.max_whammies
    inside = [w < max_whammies for w in whammies]
    up = int(player_up(values)) if sum(inside) > (0 if board.rules.house else 1) else -1
    best = max(score if within else -1 for score, within in zip(scores, inside, strict=True))
    winners = [i for i, score in enumerate(scores) if up < 0 and inside[i] and score == best]
    backdrop, top, height = around()
    room = (ACROSS - 2) * WIDE
    gap = (room - players * DESK) / (players + 1)
    desks, sentences = [], []
    for i, numbers_of in enumerate(zip(scores, earned, passed, whammies, strict=True)):
        role = UP if i == up else GOOD if i in winners else "" if inside[i] else GONE
        corner = WIDE + gap + i * (DESK + gap), top
        desk, about = _desk(i, corner, role, numbers_of, max_whammies)
        desks.append(desk)
        sentences.append(about)
    if up >= 0:
        title = f"player {up + 1} is up"
    else:
        who = listed([f"player {i + 1}" for i in winners] or ["nobody"])
        title = f"the game is over: {who} {'share the win' if len(winners) > 1 else 'has won'}"
    return Scene(title, " ".join(sentences), ACROSS * WIDE, height, tuple(desks), backdrop)


def _description(player: int, desk: tuple[int, ...], inside: bool) -> str:
    score, earned, passed, whammies = desk
    if not inside:
        return f"Player {player + 1} is out, with {_whammies(whammies)}."
    kinds = [f"{n} {kind}" for n, kind in ((earned, "earned"), (passed, "passed")) if n]
    spins = "no spins"
    if kinds:
        spins = f"{' and '.join(kinds)} spin{'s' * (earned + passed != 1)}"
    return f"Player {player + 1}: ${score:,}, {spins}, {_whammies(whammies)}."


def _whammies(count: int) -> str:
    return many(count, "whammy", "whammies") if count else "no whammies"


# --- desks -----------------------------------------------------------------------------------


@lru_cache(4096)
def _desk(
    player: int, corner: tuple[float, float], role: str, desk: tuple[int, ...], out: int
) -> tuple[Group, str]:
    """Return a player's desk with its top left corner there, and its description."""
    (x, y), (score, earned, passed, whammies), number = corner, desk, player + 1
    inside, middle, money = whammies < out, x + DESK / 2, f"${score:,}"
    text = _description(player, desk, inside)
    head = {UP: " · up", GOOD: " · wins", GONE: " · out"}.get(role, "")
    shapes: list[Shape] = [
        Box("desk", x, y, DESK, DESK_HIGH, role=role, about=text),
        Words(f"player {number}{head}", middle, y + 20, 17.0, bold=role == UP),
        Box("plate", x + 9, y + 36, DESK - 18, 42, (money,), "" if inside else GONE,
            fitting(money, DESK - 22, 26), f"the money of player {number}",
            f"scores_{number}", str(score)),
    ]  # fmt: skip
    for kind, count, below, marked, word in (
        ("earned", earned, 86, "", ""), ("passed", passed, 136, UP, "P"),
    ):  # fmt: skip
        shown, field = f"{count} {kind} spin{'s' * (count != 1)}", f"{kind}_{number}"
        shapes += [
            Box("plate", x + 9, y + below, DESK - 18, 46, (), QUIET, 16, shown, field, str(count)),
            Words(shown, middle, y + below + 12, 13.0),
        ]
        if count * PIECE > DESK - 14:  # no room for each
            shapes.append(Counter(middle, y + below + 32, 11, str(count), marked, shown))
        else:
            shapes += (Counter(spot, y + below + 32, 10, word, marked)
                       for spot in _spread(middle, count, PIECE))  # fmt: skip
    shapes += [
        Box("plate", x + 9, y + 186, DESK - 18, 46, (), QUIET, 16,
            f"player {number} has {whammies} of {out} whammies", f"whammies_{number}",
            str(whammies)),
        Words("whammies", middle, y + 197, 13),
        *(Counter(spot, y + 217, 11, *(("W", BAD) if k < whammies else ("", GONE)))
          for k, spot in enumerate(_spread(middle, out, 27))),
    ]  # fmt: skip
    return Group(tuple(shapes)), text


def _spread(middle: float, count: int, apart: float) -> list[float]:
    """Return the centres of pieces in a row."""
    return [middle + (k - (count - 1) / 2) * apart for k in range(count)]


# --- the board -------------------------------------------------------------------------------


def _around(board: PressYourLuckBoard) -> Around:
    leaves = board.leaves()
    if board.squares is None or [*map(len, board.squares)] != SHOWN:
        shapes = tuple(_outcomes(board, sorted(leaves, key=lambda leaf: -leaf.chance)))
        top = max(shape.y for shape in shapes) + OUTCOME_HIGH + 14
        return Group(shapes), top, top + DESK_HIGH + 4
    chances = {leaf.location: float(leaf.chance) for leaf in leaves}
    known = board.rules.choices == "random"  # else it depends on who is up
    pieces: list[Shape] = []
    for n, slides in enumerate(board.squares, start=1):
        x, y = RING[n - 1][0] * WIDE, RING[n - 1][1] * HIGH
        pieces.append(Box("square", x + 2, y + 2, WIDE - 4, HIGH - 4))
        pieces.append(Words(str(n), x + 7, y + 11, 10, "start", role=QUIET))
        for k, slide in enumerate(slides):
            chance = _chance(chances.get(("squares", str(n), k)))
            text = f"square {n}: {slide}{chance if known or slide.moves else ''}"
            label = _label(slide)
            pieces.append(Box("slide", x + 4, y + 17 + 23 * k, WIDE - 8, 21, (label,),
                             _role(slide), fitting(label, WIDE - 8, 13), text))  # fmt: skip
    pieces.append(Box("light", 2, 2, WIDE - 4, HIGH - 4))
    return Group(tuple(pieces)), HIGH + (HIGH * (DOWN - 2) - DESK_HIGH) / 2, DOWN * HIGH


def _outcomes(board: PressYourLuckBoard, leaves: list[Leaf]) -> Iterator[Box]:
    shown, known = leaves[:MAX_SHOWN], board.squares is None or board.rules.choices == "random"
    across = min(ACROSS, len(shown))
    margin = (ACROSS - across) * WIDE / 2
    for i, leaf in enumerate(shown):
        more = len(leaves) - MAX_SHOWN
        lines = (_label(leaf.slide), f"chance {leaf.chance}" if known else "")
        if more > 0 and i == MAX_SHOWN - 1:
            lines = (f"and {more + 1} more", "")
        yield Box("slide", margin + i % across * WIDE + 2, i // across * OUTCOME_HIGH + 2, WIDE - 4,
                  OUTCOME_HIGH - 6, lines, _role(leaf.slide),
                  min(fitting(line, WIDE - 8, 13) for line in lines),
                  f"{leaf.slide}{_chance(float(leaf.chance)) if known else ''}")  # fmt: skip


def _chance(chance: float | None) -> str:
    return " leads on" if chance is None else f", {chance:.2%} of spins"


def _label(slide: Slide) -> str:
    dollars = slide.kind.startswith("money")
    return (
        f"${slide.number:,}{str(slide).removeprefix(str(slide.number))}" if dollars else str(slide)
    )


def _role(slide: Slide) -> str:
    if slide.kind == "whammy":
        return BAD
    if slide.moves:
        return QUIET
    return GOOD if slide.spins else ""


# --- the outcomes of a spin ----------------------------------------------------------------------


def spin_names(
    game: Game, slides: Callable[[], Lists], state: Ints, action: int, children: Ints
) -> list[str | None]:
    """Return the names of the states (n, fields) that an action leads to from a state (fields,).

    None if an offer is taken: then the action's name serves.
    """
    if action > game.players:
        return [None] * len(children)
    if action != PLAY:
        passed = by_field(children - state)[PASSED][:, action - 1]
        return [f"player {action} gets {many(spins, 'spin')}" for spins in passed.tolist()]
    board, edges, up = board_of(game), expand(game, state.reshape(1, -1)), int(player_up(state))
    has_whammy, leading = by_field(state)[WHAMMIES][up] > 0, dict[bytes, Lists]()
    for after, effects in zip(edges.children[edges.actions == PLAY], slides(), strict=True):
        available = tuple(e for e in effects if e.kind != MAY_LOSE or has_whammy)
        leading.setdefault(after.tobytes(), []).append(available)
    out = by_field(children)[WHAMMIES][:, up] == board.rules.max_whammies
    return [
        _spin_name(tuple(leading[after.tobytes()]), board.solve.score_unit) + ", and out" * is_out
        for after, is_out in zip(children, out.tolist(), strict=True)
    ]


def _slides(board: PressYourLuckBoard) -> Lists:
    """Return the effects that each outcome of a spin offers, in the order of the transition."""
    outcomes = outcome_distribution(board)
    plain = [Effect(WHAMMY), *(Effect(PAYS, units) for units, _ in outcomes.money),
             *(Effect(PAYS, units, 1) for units, _ in outcomes.spin)]  # fmt: skip
    return [*((each,) for each in plain), *(each for each, _ in outcomes.others)]


@lru_cache(1024)
def _spin_name(outcomes: tuple[tuple[Effect, ...], ...], unit: int) -> str:
    """Return one name for outcomes that lead to the same state, such as all amounts at the cap."""
    outcomes = tuple(dict.fromkeys(outcomes))
    names = [" or ".join(effect_name(effect, unit) for effect in effects) for effects in outcomes]
    if len(outcomes[0]) > 1:
        return f"a choice of {names[0]}"
    if len(names) > 1 and all(effects[0].kind == PAYS for effects in outcomes):
        smallest = min(outcomes)[0]
        return effect_name(smallest, unit, " or more")
    return " or ".join(dict.fromkeys(names))
