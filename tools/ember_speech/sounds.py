"""Sounds that are no speech: music, tones, beeps, sirens, machines, birds, knocks, voices without words.

Each is drawn as parts, which say a hundred times a second how high and how loud they are, and is made of
sines and noise on the training's device. A part's harmonics have their weights; those of a voice follow
resonances that move.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tools.ember_speech.voices import SAMPLE_RATE
from tools.ember_speech.windows import SAMPLES

TICKS = 100  # a second
COUNT = SAMPLES // (SAMPLE_RATE // TICKS)
HARMONICS = 14
_TIME = np.arange(COUNT) / TICKS

Track = NDArray[np.float64]


@dataclass
class Part:
    """Frequency in Hz and loudness by tick, and the weights of the harmonics [HARMONICS, 1 or ticks]."""

    pitch: Track
    loudness: Track
    weights: NDArray[np.float64]


@dataclass
class Sound:
    """What is heard in a window: parts, and noise of a spectrum that falls with a slope, by its loudness."""

    parts: list[Part] = field(default_factory=list)
    noise: Track = field(default_factory=lambda: np.zeros(COUNT))
    slope: float = 0.0


def _timbre(rng: np.random.Generator) -> NDArray[np.float64]:
    """Harmonics that get weaker, of a string, a reed or a pure tone."""
    n = np.arange(1, HARMONICS + 1)
    weights = n ** -rng.uniform(0.4, 3.0) * rng.uniform(0.3, 1, HARMONICS)
    weights[0] = max(weights[0], rng.uniform(0, 1))
    if rng.random() < 0.25:
        weights[1::2] *= 0.05
    if rng.random() < 0.2:
        weights[1:] = 0
    return weights[:, None]


def _strikes(rng: np.random.Generator, begins: list[int], ends: list[int]) -> Track:
    """The loudness of notes, each with its own strength: struck, blown, or even."""
    kind, decay = rng.integers(3), rng.uniform(0.8, 14)
    rise = rng.uniform(0.01, 0.15)
    loudness = np.zeros(COUNT)
    for begin, end in zip(begins, ends, strict=True):
        t = np.arange(max(end - begin, 1)) / TICKS
        if kind == 0:
            shape = np.exp(-decay * t)
        elif kind == 1:
            shape = np.minimum(t / rise, 1) * np.minimum((t[-1] - t) / rise + 0.1, 1)
        else:
            shape = np.ones_like(t)
        loudness[begin : begin + len(t)] = (rng.uniform(0.5, 1) * shape)[: COUNT - begin]
    return loudness


def _music(rng: np.random.Generator) -> Sound:
    """Parts of a melody in one key and time, often with drums."""
    beat = 60 / rng.uniform(55, 190)
    scale = np.array(
        [[0, 2, 4, 5, 7, 9, 11], [0, 2, 3, 5, 7, 8, 10], [0, 2, 4, 7, 9, 12, 14]][rng.integers(3)]
    )
    key, sound = 55 * 2 ** (rng.integers(12) / 12), Sound()
    for _ in range(rng.integers(1, 5)):
        octave, lengths = rng.integers(0, 5), rng.choice([0.25, 0.5, 1, 2, 4], rng.integers(1, 4))
        rests, at, degree = rng.choice([0, 0.1, 0.4]), 0.0, int(rng.integers(7))
        begins, ends, pitch = list[int](), list[int](), np.full(COUNT, key)
        while at < COUNT / TICKS:
            length = beat * rng.choice(lengths)
            degree = int(np.clip(degree + rng.integers(-3, 4), 0, 6))
            begin, end = round(at * TICKS), min(round((at + length) * TICKS), COUNT)
            pitch[begin:end] = key * 2 ** (octave + scale[degree] / 12)
            if rng.random() >= rests and begin < end:
                begins.append(begin)
                ends.append(end)
            at += length
        trill = rng.choice([0, 0.01, 0.03]) * np.sin(2 * np.pi * rng.uniform(4, 7) * _TIME)
        loudness = _strikes(rng, begins, ends) * rng.uniform(0.3, 1)
        sound.parts.append(Part(pitch * (1 + trill), loudness, _timbre(rng)))
        if rng.random() < 0.3:  # a chord
            for step in rng.choice([3, 4, 7, 9, 12], 2, replace=False):
                sound.parts.append(Part(pitch * 2 ** (step / 12), loudness, sound.parts[-1].weights))
    if rng.random() < 0.5:
        sound.noise = _knocks(rng, beat * rng.choice([0.25, 0.5, 1])).noise * rng.uniform(0.2, 1.5)
        sound.slope = rng.uniform(-0.5, 1)
    return sound


def _knocks(rng: np.random.Generator, period: float | None = None) -> Sound:
    """Drums, steps, keys, clapping: short noises, even or not."""
    even = period is not None or rng.random() < 0.5
    period = period or 10 ** rng.uniform(-1.2, 0.5)
    begins, at = list[int](), rng.uniform(0, period)
    while at < COUNT / TICKS - 0.05:
        if rng.random() < 0.85:
            begins.append(round(at * TICKS))
        at += period if even else rng.exponential(period) + 0.03
    noise, decay = np.zeros(COUNT), rng.uniform(4, 60)
    for begin in begins:
        shape = np.exp(-decay * np.arange(min(60, COUNT - begin)) / TICKS) * rng.uniform(0.3, 1)
        noise[begin : begin + len(shape)] = np.maximum(noise[begin : begin + len(shape)], shape)
    return Sound(noise=noise, slope=rng.uniform(-0.5, 1.5))


def _pulses(rng: np.random.Generator) -> Track:
    """On and off, as beeps and bells are; or always on."""
    if rng.random() < 0.35:
        return np.ones(COUNT)
    period, share = 10 ** rng.uniform(-1, 0.8), rng.uniform(0.08, 0.9)
    on = ((_TIME + rng.uniform(0, period)) % period < share * period).astype(float)
    if rng.random() < 0.3:  # groups
        group = period * rng.integers(2, 8)
        on *= _TIME % (2 * group) < group
    return on


def _tones(rng: np.random.Generator) -> Sound:
    """One to four steady tones: dials, beeps, whistles, alarms; sometimes trembling or changing place."""
    lowest, sound, on = 10 ** rng.uniform(1.8, 3.5), Sound(), _pulses(rng)
    tremble = 1 + rng.choice([0, 0, 0.5, 1.0]) * np.sin(2 * np.pi * 10 ** rng.uniform(0, 1.5) * _TIME)
    weights = _timbre(rng)
    for _ in range(rng.integers(1, 5)):
        pitch = np.full(COUNT, min(lowest * rng.choice([1, 1.25, 1.5, 2, rng.uniform(1, 2)]), 7000))
        if rng.random() < 0.3:
            period = rng.uniform(0.1, 1.5)
            pitch = np.where(_TIME % period < period / 2, pitch, pitch * rng.uniform(0.7, 1.4))
        if rng.random() < 0.15:  # keys of a telephone: a tone for each
            pitch = pitch * rng.uniform(0.8, 1.25, 400)[(_TIME / rng.uniform(0.1, 0.4)).astype(int) % 400]
        sound.parts.append(Part(pitch, on * tremble * rng.uniform(0.3, 1), weights))
    return sound


def _sweeps(rng: np.random.Generator) -> Sound:
    """Up, down, or both, again and again: sirens, whistles, alarms."""
    low, octaves, period = 10 ** rng.uniform(1.8, 3), rng.uniform(0.3, 5), 10 ** rng.uniform(-0.6, 1.5)
    turn = (_TIME / period) % 1
    way = [turn, 1 - turn, np.abs(2 * turn - 1), 0.5 + 0.5 * np.sin(2 * np.pi * turn)][rng.integers(4)]
    pitch = low * 2 ** (octaves * way)
    if rng.random() < 0.3:
        pitch = low + (low * 2**octaves - low) * way
    return Sound([Part(np.minimum(pitch, 7500), _pulses(rng), _timbre(rng))])


def _machine(rng: np.random.Generator) -> Sound:
    """Mains, motors, fans: many harmonics of a low tone that hardly changes, and noise."""
    pitch = rng.choice([50.0, 60.0, 100.0, 120.0, rng.uniform(20, 400)])
    drift = np.interp(_TIME, np.linspace(0, 30, 8), rng.uniform(-1, 1, 8)) * rng.choice([0, 0.02, 0.3])
    n = np.arange(1, HARMONICS + 1)[:, None]
    weights = n ** -rng.uniform(0, 2) * rng.uniform(0, 1, (HARMONICS, 1))
    beat = 1 + rng.choice([0, 0.6]) * np.sin(2 * np.pi * rng.uniform(1, 15) * _TIME)
    noise = np.full(COUNT, rng.choice([0, 0.1, 0.6])) * beat
    return Sound([Part(pitch * (1 + drift), beat, weights)], noise, rng.uniform(0, 1.5))


def _birds(rng: np.random.Generator) -> Sound:
    """Short calls that glide, between two and seven kilohertz, in rows."""
    pitch, loudness, at = np.full(COUNT, 3000.0), np.zeros(COUNT), rng.uniform(0, 2)
    while at < COUNT / TICKS - 0.4:
        base, length, gap = rng.uniform(1800, 6000), rng.uniform(0.05, 0.3), rng.uniform(0.04, 0.2)
        glide, bend = rng.uniform(-0.4, 0.4), rng.uniform(-0.3, 0.3)
        for _ in range(rng.integers(1, 9)):
            begin, end = round(at * TICKS), min(round((at + length) * TICKS), COUNT)
            if begin >= end:
                break
            x = np.linspace(0, 1, end - begin)
            pitch[begin:end] = base * (1 + glide * x + bend * np.sin(np.pi * x))
            loudness[begin:end] = np.sin(np.pi * (x * 0.9 + 0.05))
            at += length + gap
        at += rng.exponential(1.5)
    return Sound([Part(np.clip(pitch, 800, 7500), loudness, _timbre(rng) ** 2)])


def _voice(rng: np.random.Generator) -> Sound:
    """Humming and vowels, sung or moaned: harmonics through resonances that move, without a word."""
    sound, slow = Sound(), np.linspace(0, 30, int(rng.integers(4, 40)))
    for _ in range(rng.choice([1, 1, 3])):
        base = rng.uniform(80, 400)
        pitch = base * 2 ** (np.interp(_TIME, slow, rng.normal(0, rng.choice([0.1, 0.4]), len(slow))))
        pitch = pitch * (1 + 0.02 * np.sin(2 * np.pi * rng.uniform(4, 7) * _TIME))
        hz = np.arange(1, HARMONICS + 1)[:, None] * pitch
        weights = np.zeros_like(hz)
        for low, high in ((250, 900), (700, 2400), (2200, 3400)):
            centre = np.interp(_TIME, slow, rng.uniform(low, high, len(slow)))
            weights += np.exp(-(((hz - centre) / rng.uniform(80, 250)) ** 2)) * (500 / centre)
        steady = np.interp(_TIME, slow, rng.uniform(0, 1, len(slow)) ** rng.choice([0.2, 2]))
        sound.parts.append(Part(pitch, steady, weights + 0.01))
    return sound


def _weather(rng: np.random.Generator) -> Sound:
    """Wind, waves, rain, tearing: noise that swells, or trembles as fast as syllables."""
    points = np.linspace(0, 30, int(10 ** rng.uniform(0.7, 2.4)))
    swell = np.interp(_TIME, points, rng.uniform(0, 1, len(points)) ** rng.choice([0.3, 1, 3]))
    return Sound(noise=swell, slope=rng.uniform(-0.7, 1.6))


_KINDS: tuple[tuple[Callable[[np.random.Generator], Sound], float], ...] = (
    (_music, 0.38),
    (_tones, 0.2),
    (_sweeps, 0.08),
    (_machine, 0.06),
    (_birds, 0.05),
    (_voice, 0.09),
    (_knocks, 0.07),
    (_weather, 0.07),
)


def draw(rng: np.random.Generator) -> Sound:
    """A sound of any kind, sometimes of two, that begins and ends somewhere."""
    shares = np.array([share for _, share in _KINDS])
    make = [_KINDS[i][0] for i in rng.choice(len(_KINDS), 2, p=shares / shares.sum())]
    sound = make[0](rng)
    if rng.random() < 0.15:
        other = make[1](rng)
        sound.parts += other.parts
        sound.noise = sound.noise + other.noise
    return sound


def render(sounds: list[Sound], device: torch.device) -> Tensor:
    """Samples [sounds, SAMPLES], float16, each as loud as 1 where it is heard."""
    parts = [(row, part) for row, sound in enumerate(sounds) for part in sound.parts]
    made = torch.zeros(len(sounds), SAMPLES, device=device)

    def tracks(values: list[Track]) -> Tensor:
        given = torch.from_numpy(np.stack(values).astype(np.float32)).to(device)
        return F.interpolate(given[:, None], SAMPLES, mode="linear")[:, 0]

    for begin in range(0, len(parts), 24):
        some = parts[begin : begin + 24]
        pitch = tracks([part.pitch for _, part in some])
        turns = (pitch.double().cumsum(1) / SAMPLE_RATE % 1).float()
        made_here = torch.zeros_like(pitch)
        for n in range(HARMONICS):
            weights = torch.from_numpy(
                np.stack([np.broadcast_to(p.weights[n], COUNT) for _, p in some]).astype(np.float32)
            )
            weights = F.interpolate(weights.to(device)[:, None], SAMPLES, mode="linear")[:, 0]
            audible = (n + 1) * pitch < SAMPLE_RATE / 2 - 200
            made_here += weights * audible * torch.sin(2 * math.pi * (n + 1) * turns)
        made_here *= tracks([part.loudness for _, part in some])
        made_here /= made_here.square().mean(1, keepdim=True).sqrt() + 1e-6
        made.index_add_(0, torch.tensor([row for row, _ in some], device=device), made_here)
    loud = [row for row, sound in enumerate(sounds) if sound.noise.any()]
    if loud:
        bins = SAMPLES // 2 + 1
        hz = torch.linspace(0, SAMPLE_RATE / 2, bins, device=device).clamp(min=40)
        slopes = torch.tensor([sounds[row].slope for row in loud], device=device)[:, None]
        spectrum = torch.fft.rfft(torch.randn(len(loud), SAMPLES, device=device)) * (hz / 500) ** -slopes
        noise = torch.fft.irfft(spectrum, n=SAMPLES)
        noise = noise / noise.square().mean(1, keepdim=True).sqrt()
        made[torch.tensor(loud, device=device)] += noise * tracks([sounds[row].noise for row in loud])
    heard = (made.abs() > 1e-3).sum(1, keepdim=True).clamp(min=SAMPLE_RATE // 4)
    return (made / (made.square().sum(1, keepdim=True) / heard).sqrt().clamp(min=1e-4)).half()


class Bank:
    """Sounds that are kept, some of them new with each use.

    Parameters
    ----------
    device : torch.device
        Where they are.
    seed : int
        Of what is drawn.
    count : int
        How many.
    """

    def __init__(self, device: torch.device, seed: int, count: int) -> None:
        self._rng = np.random.default_rng([seed, 7])
        self._device = device
        drawn = [draw(self._rng) for _ in range(count)]
        self.sounds = torch.cat([render(drawn[i : i + 16], device) for i in range(0, count, 16)])
        self._next = 0

    def renew(self, count: int = 1) -> None:
        """Draw some anew, the oldest ones."""
        for _ in range(count):
            self.sounds[self._next] = render([draw(self._rng)], self._device)[0]
            self._next = (self._next + 1) % len(self.sounds)
