"""Fourier transforms read all along their axes."""

import torch

from tests.jacobian import check

R = torch.randn


def test_transforms():
    check(
        lambda x: {
            "along rows": torch.fft.rfft(x, dim=0).real.sum(0),
            "inverse": torch.fft.irfft(torch.complex(x, x.sin()), n=3, dim=1),
            "power": torch.fft.fft(x, dim=1).abs() ** 2,
            "two axes": torch.fft.fft2(x).abs(),
            "shifted": torch.fft.fftshift(x) * 2,
        },
        R(3, 3),
        exact=False,  # the imaginary part of a real signal's mean is 0
    )


def test_short_time_transforms():
    window = torch.hann_window(4).double()

    def there(x):
        return torch.stft(x, 4, 2, window=window, return_complex=True, center=False).abs()

    def back(x):
        frames = torch.stft(x, 4, 2, window=window, return_complex=True)
        return torch.istft(frames * 2, 4, 2, window=window)

    check(lambda x: {"there": there(x)}, R(8))
    # Overlapping frames give back each sample by itself: terms of the others cancel.
    check(lambda x: {"there and back": back(x)}, R(8), exact=False)
