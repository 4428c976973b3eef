"""What the model hears: windows of samples, made worse in many ways, and their log-mel spectrum."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from tools.ember_speech.sounds import Bank
from tools.ember_speech.voices import SAMPLE_RATE
from tools.ember_speech.windows import SAMPLES, Batch

MELS = 80
WINDOW, HOP = 400, 160


def mel_filters(mels: int = MELS) -> Tensor:
    """Triangles on Slaney's scale, each of area 1 in Hz: [mels, 201]."""

    def mel_of(hz: float) -> float:
        return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)

    scale = np.linspace(0, mel_of(8000), mels + 2)
    edges = np.where(scale < 15, scale * 200 / 3, 1000 * np.exp((scale - 15) * math.log(6.4) / 27))
    bins = np.linspace(0, 8000, WINDOW // 2 + 1)
    low, middle, high = (edges[i : i + mels, None] for i in range(3))
    weights = np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)))
    return torch.from_numpy((weights * 2 / (high - low)).astype(np.float32))


class LogMel:
    """The normalised log-mel spectrum of windows [n, samples]: [n, MELS, samples / 160]."""

    def __init__(self, device: torch.device) -> None:
        self._filters = mel_filters().to(device)
        self._window = torch.hann_window(WINDOW, device=device)

    def __call__(self, sound: Tensor, louder: Tensor | float = 0.0) -> Tensor:
        """`louder`: by how much the recording's loudest power is above the window's, log10, [n]."""
        spectrum = torch.stft(sound, WINDOW, HOP, window=self._window, center=True, return_complex=True)
        power = spectrum[..., :-1].abs().square()
        log = (self._filters @ power).clamp(min=1e-10).log10()
        top = log.amax((1, 2)) + louder
        return (torch.maximum(log, (top - 8)[:, None, None]) + 4) / 4


def gather(pool: Tensor, plan: Batch) -> Tensor:
    """The samples of a batch, as planned: [windows, SAMPLES] of float32. `pool`: int16 samples."""
    device = pool.device
    placed = torch.from_numpy(plan.placed).to(device)
    gains = torch.from_numpy(plan.gains).to(device)
    sound = torch.zeros(len(plan.recorded) * SAMPLES, device=device)
    if len(placed):
        row, begin, at, count = placed.unbind(1)
        clip = torch.repeat_interleave(torch.arange(len(placed), device=device), count)
        within = torch.arange(len(clip), device=device) - (count.cumsum(0) - count)[clip]
        sound[(row * SAMPLES + at)[clip] + within] = (
            pool[begin[clip] + within].float() * (gains / 32768)[clip]
        )
    sound = sound.view(-1, SAMPLES)
    backwards = torch.from_numpy(plan.backwards).to(device)
    return torch.where(backwards[:, None], sound.flip(1), sound)


class Worsen:
    """Rooms, noises, other sounds, clicks, narrow bands and clipping, at random: for training and tests.

    Parameters
    ----------
    device : torch.device
        Where the windows are.
    seed : int
        Of what is drawn.
    noises, sounds : int
        Different noises, and other sounds that are no speech, that are kept.
    """

    def __init__(self, device: torch.device, seed: int, noises: int = 384, sounds: int = 16) -> None:
        self._device = device
        self._random = torch.Generator(device).manual_seed(seed)
        self._bank = torch.cat([self._noises(min(32, noises - i)) for i in range(0, noises, 32)])
        self._sounds = Bank(device, seed, sounds)

    def __call__(self, sound: Tensor, recorded: Tensor, hard: bool | None = None) -> Tensor:
        """Windows [n, SAMPLES] made worse up to the end of their recordings [n]; silence follows.

        `hard`: all of them with noise (about 10 dB below the speech), or none with anything.
        """
        count = len(sound)
        if hard is False:
            return sound * self._within(recorded)
        sound = self._in_rooms(sound, 0.4 if hard is None else 1.0)
        power = sound.square().sum(1) / (sound.abs() > 1e-4).sum(1).clamp(min=SAMPLE_RATE)
        level = torch.where(power > 0, power, self._uniform(count, -6, -2, power=10)).sqrt()
        ratio = self._uniform(count, 4, 45) if hard is None else self._uniform(count, 8, 14)
        some = self._uniform(count) < (0.75 if hard is None else 1.0)
        which = torch.randint(len(self._bank), (count,), generator=self._random, device=self._device)
        noise = self._bank[which].roll(int(self._uniform(1).item() * SAMPLES), 1).float()
        noise = noise * (level * 10 ** (-ratio / 20) * some)[:, None]
        if hard is None:
            noise = noise + self._other_sounds(sound, level, power == 0)
        sound = (sound + noise) * self._within(recorded)
        loudness = 10 ** self._uniform(count, -1.2, 0.5)[:, None]
        clipped = (sound * loudness * 3).clamp(-0.9, 0.9) / 3
        return torch.where(self._uniform(count)[:, None] < 0.15, clipped, sound * loudness)

    def renew(self) -> None:
        """Draw one of the sounds anew."""
        self._sounds.renew()

    def _uniform(self, count: int, low: float = 0, high: float = 1, power: float | None = None) -> Tensor:
        drawn = torch.rand(count, generator=self._random, device=self._device) * (high - low) + low
        return drawn if power is None else power**drawn

    def _within(self, recorded: Tensor) -> Tensor:
        return torch.arange(SAMPLES, device=self._device) < recorded[:, None]

    def _noises(self, count: int) -> Tensor:
        """Noise of every colour, steady or in gusts, [count, SAMPLES], as loud as 1; float16."""
        bins = SAMPLES // 2 + 1
        hz = torch.linspace(0, SAMPLE_RATE / 2, bins, device=self._device).clamp(min=30)
        slope = self._uniform(count, -0.5, 1.6)[:, None]
        shape = (hz / 500) ** -slope
        for _ in range(3):  # resonances
            centre, width = self._uniform(count, 80, 6000)[:, None], self._uniform(count, 30, 800)[:, None]
            shape = shape * (
                1 + self._uniform(count, 0, 4)[:, None] * torch.exp(-(((hz - centre) / width) ** 2))
            )
        parts = torch.randn(2, count, bins, generator=self._random, device=self._device)
        noise = torch.fft.irfft(torch.complex(*(parts * shape)), n=SAMPLES)
        gusts = torch.randn(count, 1, 90, generator=self._random, device=self._device)
        gusts = torch.nn.functional.interpolate(gusts, SAMPLES, mode="linear")[:, 0]
        noise = noise * torch.exp(gusts * (0.8 * (self._uniform(count) < 0.4))[:, None])
        return (noise / noise.square().mean(1, keepdim=True).sqrt()).half()

    def _in_rooms(self, sound: Tensor, share: float) -> Tensor:
        """Echoes that die away, and bands that end early, by one pass through the frequency domain."""
        count, length = len(sound), 11520  # with it, the padded length has small factors only
        seconds = torch.arange(length, device=self._device) / SAMPLE_RATE
        decay = torch.exp(-6.9 * seconds / self._uniform(count, 0.08, 0.7)[:, None])
        echo = torch.randn(count, length, generator=self._random, device=self._device) * decay
        sparse = torch.rand(count, length, generator=self._random, device=self._device)
        early = (sparse < 0.004) & (seconds < 0.05)
        echo = echo * torch.where(early, 6.0, 1.0) * (seconds > 0.002)
        strength = self._uniform(count, -2.6, -1.1, power=10) * (self._uniform(count) < share)
        echo = echo * strength[:, None]
        echo[:, 0] = 1
        padded = SAMPLES + length
        response = torch.fft.rfft(echo, n=padded)
        hz = torch.linspace(0, SAMPLE_RATE / 2, padded // 2 + 1, device=self._device)
        telephone = (self._uniform(count) < 0.12)[:, None]
        low = torch.where(
            telephone, self._uniform(count, 150, 350)[:, None], torch.zeros((), device=self._device)
        )
        high = torch.where(telephone, self._uniform(count, 2800, 4500)[:, None], 20000.0)
        tilt = self._uniform(count, -0.4, 0.4)[:, None]
        band = torch.sigmoid((hz - low) / 40) * torch.sigmoid((high - hz) / 100) * ((hz + 100) / 1000) ** tilt
        return torch.fft.irfft(torch.fft.rfft(sound, n=padded) * response * band, n=padded)[:, :SAMPLES]

    def _other_sounds(self, sound: Tensor, level: Tensor, silent: Tensor) -> Tensor:
        """Sounds below the speech, or as loud where nobody speaks; two in three of the windows without speech
        have one. A few windows have clicks.
        """
        count = len(sound)
        bank = self._sounds.sounds
        which = torch.randint(len(bank), (count,), generator=self._random, device=self._device)
        sounds = bank[which].roll(int(self._uniform(1).item() * SAMPLES), 1).float()
        kind = self._uniform(count)
        gaps = (kind < 0.22) & ~silent
        below = (kind > 0.7) & ~silent
        ratio = torch.where(below, -self._uniform(count, 3, 35), self._uniform(count, -25, 8))
        ratio = torch.where(silent, self._uniform(count, -15, 15), ratio)
        gain = level * 10 ** (ratio / 20) * (gaps | below | (silent & (kind < 0.67)))
        ticks = 160  # samples; half a second is spared before and after what is said
        loudness = sound.abs().view(count, -1, ticks).amax(2)
        spoken = (loudness > 1e-3 * loudness.amax(1, keepdim=True)) & (loudness > 0)
        near = torch.nn.functional.max_pool1d(spoken[:, None].float(), 61, 1, 30)
        far = 1 - torch.nn.functional.avg_pool1d(near, 21, 1, 10, count_include_pad=False)
        far = torch.nn.functional.interpolate(far, SAMPLES, mode="linear")[:, 0]
        sounds = sounds * torch.where(gaps[:, None], far, 1.0) * gain[:, None]
        few = max(count // 12, 1)
        clicks = torch.randn(few, SAMPLES, generator=self._random, device=self._device) * 8
        seldom = torch.rand(few, SAMPLES, generator=self._random, device=self._device) < 1e-4
        some = torch.randperm(count, generator=self._random, device=self._device)[:few]
        below_speech = (level[some] * 10 ** (-self._uniform(few, 3, 35) / 20))[:, None]
        return sounds.index_add(0, some, clicks * seldom * below_speech)
