# SPDX-License-Identifier: MIT
#
# read_report.py FOLDER: TensorBoard, NumPy, pandas and Pillow read what
# `test_report --write FOLDER` wrote, with the values that it recorded. Exits with 77 if one of them
# is missing.
import base64
import io
import math
import re
import sys

try:
    import numpy as np
    import pandas as pd
    from PIL import Image
    from tensorboard.backend.event_processing import event_accumulator
except ImportError as error:
    print(f'SKIP: {error}')
    sys.exit(77)

folder = sys.argv[1]

# metrics.csv
table = pd.read_csv(f'{folder}/metrics.csv', engine='python')
assert list(table.columns[:3]) == ['step', 'loss/train', 'learning_rate'], table.columns
assert list(table['step']) == list(range(1, 61)), table['step']
assert list(table['loss/train']) == [1 / step for step in range(1, 61)]
array = np.genfromtxt(f'{folder}/metrics.csv', delimiter=',', names=True)
assert np.array_equal(array['losstrain'], [1 / step for step in range(1, 61)])
assert np.isnan(array['lossvalidation'][0]) and array['lossvalidation'][19] == 0.5 / 20

# the event file
events = event_accumulator.EventAccumulator(
    folder, size_guidance={'scalars': 0, 'histograms': 0, 'images': 0}
)
events.Reload()
scalars = events.Scalars('loss/train')
assert [s.step for s in scalars] == list(range(1, 61))
assert [s.value for s in scalars] == [float(np.float32(1 / step)) for step in range(1, 61)]
assert abs(scalars[-1].wall_time - events.FirstEventTimestamp()) < 600
strange = [s.value for s in events.Scalars('strange')]
assert math.isnan(strange[0]) and strange[1] == math.inf and strange[2] == -math.inf, strange
values = np.arange(1000) / 1000
histogram = events.Histograms('weights/0.weight')[-1]
assert [h.step for h in events.Histograms('weights/0.weight')] == [20, 40, 60]
found = histogram.histogram_value
assert (found.min, found.max, found.num) == (0, 0.999, 1000), found
assert abs(found.sum - values.sum()) < 1e-9 and abs(found.sum_squares - (values**2).sum()) < 1e-9
edges = [-math.inf, *found.bucket_limit]
wanted = [((values > a) & (values <= b)).sum() for a, b in zip(edges, edges[1:])]
assert list(found.bucket) == wanted, found
image = events.Images('worst/1')[-1]
assert (image.width, image.height) == (8, 8)

# the pictures of the page
page = open(f'{folder}/report.html', encoding='utf-8').read()
pictures = re.findall(r'data:image/png;base64,([A-Za-z0-9+/=]+)', page)
assert len(pictures) == 20, len(pictures)
pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[0]))))
assert pixels.shape == (8, 8, 3), pixels.shape
ramp = np.floor(np.arange(64).reshape(8, 8) / 63 * 255 + 0.5)
assert np.array_equal(pixels, np.stack([ramp] * 3, -1)), pixels[..., 0]

from tensorboard import version

print(
    f'TensorBoard {version.VERSION}, NumPy {np.__version__}, pandas {pd.__version__}: '
    f'{len(scalars)} steps, {len(events.Tags()["histograms"])} histograms, {len(pictures)} pictures'
)
