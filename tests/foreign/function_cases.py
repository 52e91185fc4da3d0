# SPDX-License-Identifier: MIT
#
# The calls that make_functions.py records, in groups; each group becomes one program. The order of
# the groups decides on the numbers.
import function_cases_images as images
import function_cases_layers as layers
import function_cases_numbers as numbers
import function_cases_shapes as shapes
import function_cases_values as values

GROUPS = {
    'pointwise': values.pointwise(),
    'inplace': values.inplace(),
    'binary': values.binary(),
    'views': shapes.views(),
    'index': shapes.index(),
    'creation': numbers.creation(),
    'reductions': numbers.reductions(),
    'linear': layers.linear(),
    'recurrent': layers.recurrent(),
    'convolution': layers.convolution(),
    'training': layers.training(),
    'pooling': images.pooling(),
    'losses': images.losses(),
    'fourier': images.fourier(),
    'aliases': shapes.aliases(),
}
