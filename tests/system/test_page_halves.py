"""The page reads every number of half precision as NumPy reads it."""

import base64

import numpy as np
import pytest
import safetensors.numpy

from browser import Seen
from orrery.page.page import Page
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject
from views_toy import given_to, language_model_of

pytestmark = pytest.mark.slow


def test_every_half_is_read_as_numpy_reads_it(browser, tmp_path):
    lm = language_model_of("gpt2")
    file = Page(ViewSubject(lm, Inside(lm, given_to(lm, "the cat")))).save(tmp_path / "page.html")
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    visit = Seen(browser).open(file.as_uri())
    sent = base64.b64encode(safetensors.numpy.save({"x": halves})).decode()
    bits = visit.page.evaluate(_READ, sent)
    read = np.array(bits, dtype=np.uint32).view(np.float32)
    np.testing.assert_array_equal(read, halves.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(read)[halves == 0], np.signbit(halves)[halves == 0])
    visit.close()


_READ = """async (sent) => {
  const { decode } = await import("#see/safetensors.js");
  const bytes = Uint8Array.from(atob(sent), (letter) => letter.charCodeAt(0));
  return [...new Uint32Array(decode(bytes.buffer).tensors.x.data.buffer)];
}"""
