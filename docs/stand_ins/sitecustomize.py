"""Give SciPy the two functions for images that it has no longer, in the environment of TensorFlow 1.15."""

import sys

if sys.version_info < (3, 8):
    import scipy.misc

    scipy.misc.imsave = lambda path, image: open(path, "wb").close()
    scipy.misc.imresize = lambda image, size, interp=None: image
