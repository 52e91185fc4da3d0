# SPDX-License-Identifier: MIT
"""Parameters of operators in PyTorch's names, order and defaults.

An operator's own arguments are its inputs and then its options. A row here is for an operator whose
parameters PyTorch has in another order; the others differ at most in names (NAMES). In a row

    name, name:own     a parameter, and the operator's name of it
    *name              whole numbers, one by one or as a list: view(3, 2), view([3, 2])
    name=value         a default that the operator does not have
    -name              accepted only with the value that has no effect (None, False)
    +name              accepted without effect
    |                  the parameters that follow are keywords only

`name -> operator` is for an operator with another name. Names that belong to nn.functional, where
the same name has other parameters, are in FUNCTIONAL."""

import ast

from ._tensor import Tensor

TABLE = """
gather                  input dim index | -sparse_grad
scatter_add             input dim index src
scatter_reduce          input dim index src reduce | include_self
index_select            input dim index
index_add               input dim index source:src | alpha
index_copy              input dim index source:src
index_fill              input dim index value
index_reduce            input dim index source:src reduce | include_self
searchsorted            sorted_sequence input:values | out_int32 right side sorter

view                    input *shape
reshape                 input *shape
expand                  input *size:shape +implicit
permute                 input *dims
repeat                  input *repeats:times
flip                    input *dims
cat                     tensors dim=0
concat -> cat           tensors dim=0
concatenate -> cat      tensors dim=0
stack                   tensors dim=0
unfold                  input dimension:dim size:window step
sum_to_size -> sum_to   input *size:shape
clone                   input | +memory_format
cumsum                  input dim | dtype
sort                    input dim descending +stable
topk                    input k dim largest +sorted
cov                     input | correction fweights aweights
addcmul                 input tensor1:a tensor2:b | value
addcdiv                 input tensor1:a tensor2:b | value
addmm                   input mat1:a mat2:b | beta alpha
baddbmm                 input batch1:a batch2:b | beta alpha
mm -> matmul            input mat2:b
true_divide -> div      input other:b
divide -> div           input other:b | rounding_mode
multiply -> mul         input other:b
subtract -> sub         input other:b | alpha
absolute -> abs         input
negative -> neg         input
arccos -> acos          input
arcsin -> asin          input
arctan -> atan          input
arccosh -> acosh        input
arcsinh -> asinh        input
arctanh -> atanh        input
arctan2 -> atan2        input other:b
fix -> trunc            input
greater -> gt           input other:b
greater_equal -> ge     input other:b
less -> lt              input other:b
less_equal -> le        input other:b
not_equal -> ne         input other:b
inverse -> linalg_inv   input
det -> linalg_det       input
slogdet -> linalg_slogdet input
cholesky -> linalg_cholesky input upper
matrix_exp -> linalg_matrix_exp input
swapaxes -> transpose   input axis0:dim0 axis1:dim1
swapdims -> transpose   input dim0 dim1
stft                    input n_fft hop_length win_length window center pad_mode normalized onesided
                        return_complex align_to_window
istft                   input n_fft hop_length win_length window center normalized onesided length
                        return_complex

layer_norm              input normalized_shape weight bias eps +cudnn_enable
group_norm              input num_groups weight bias eps +cudnn_enabled
rms_norm                input normalized_shape weight eps
local_response_norm     input size:neighbours alpha beta k
affine_grid             theta size:output_size align_corners
lp_pool1d               input norm_type:p kernel_size:kernel stride ceil_mode
lp_pool2d               input norm_type:p kernel_size:kernel stride ceil_mode
lp_pool3d               input norm_type:p kernel_size:kernel stride ceil_mode
bilinear                input1:a input2:b weight bias
scaled_dot_product_attention
                        query:q key:k value:v attn_mask:mask dropout_p is_causal scale enable_gqa

mse_loss                input target OLD reduction -weight
l1_loss                 input target OLD reduction -weight
smooth_l1_loss          input target OLD reduction beta
huber_loss              input target reduction delta -weight
binary_cross_entropy    input target weight OLD reduction
binary_cross_entropy_with_logits
                        input target weight OLD reduction pos_weight
kl_div                  input target OLD reduction log_target
poisson_nll_loss        input target log_input full -size_average eps -reduce reduction
gaussian_nll_loss       input target var full eps reduction
hinge_embedding_loss    input target margin OLD reduction
margin_ranking_loss     input1:x1 input2:x2 target margin OLD reduction
multi_margin_loss       input target p margin weight OLD reduction
multilabel_margin_loss  input target OLD reduction
multilabel_soft_margin_loss
                        input target weight OLD reduction
soft_margin_loss        input target OLD reduction
triplet_margin_loss     anchor positive negative margin p eps swap OLD reduction
cosine_embedding_loss   input1:x1 input2:x2 target margin OLD reduction
cross_entropy -> cross_entropy_weighted
                        input target weight -size_average ignore_index -reduce reduction
                        label_smoothing
"""

# Of nn.functional only: the same names mean other things outside of it.
FUNCTIONAL = """
embedding               input:index weight padding_idx -max_norm +norm_type scale_grad_by_freq
                        -sparse
nll_loss -> nll_loss_weighted
                        input target weight -size_average ignore_index -reduce reduction
unfold -> im2col        input kernel_size:kernel dilation padding stride
interpolate             input size:output_size=[] scale_factor mode align_corners
                        recompute_scale_factor -antialias
softmax                 input dim +_stacklevel
softmin                 input dim +_stacklevel
log_softmax             input dim +_stacklevel
"""

# Other names of parameters, where the operator has no parameter of the first name.
NAMES = (("input", 0), ("self", 0), ("other", 1), ("vec2", 1), ("mat2", 1), ("vec", 1),
         ("dim", "dims"), ("axis", "dim"), ("axis", "dims"), ("axes", "dims"),
         ("kernel_size", "kernel"), ("source", "src"), ("num_classes", "classes"),
         ("pad", "sizes"), ("size", "shape"), ("pow", "exponent"), ("UPLO", "uplo"),
         ("A", 0), ("B", 1), ("tensor", "a"))


class Parameter:
    """A parameter of a row."""

    __slots__ = ("name", "own", "spread", "default", "kind", "keyword")

    def __init__(self, word, keyword):
        self.keyword, self.default = keyword, None
        self.kind = word[0] if word[0] in "-+" else " "
        self.spread = word[0] == "*"
        word = word.lstrip("*-+")
        if "=" in word:
            word, text = word.split("=")
            self.default = (ast.literal_eval(text),)
        self.name, _, own = word.partition(":")
        self.own = own or self.name


def _rows(table):
    found = {}
    lines = []
    for line in table.split("\n"):
        if line.startswith(" "):
            lines[-1] += line
        elif line:
            lines.append(line)
    for line in lines:
        words = line.replace(" OLD", " -size_average -reduce").split()
        name = operator = words.pop(0)
        if words[0] == "->":
            operator = words[1]
            words = words[2:]
        cut = words.index("|") if "|" in words else len(words)
        found[name] = (operator, [Parameter(word, at > cut) for at, word in enumerate(words)
                                  if word != "|"])
    return found


ROWS = _rows(TABLE)
FUNCTIONAL_ROWS = {**ROWS, **_rows(FUNCTIONAL)}


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) or (
        not isinstance(value, (Tensor, bool, float)) and hasattr(value, "__index__"))


def translate(name, row, args, kwargs):
    """Returns the arguments of a call by PyTorch's parameters as the operator's, by name."""
    places = [p for p in row if not p.keyword]
    given, args = {}, list(args)
    for parameter in places:
        if not args:
            break
        if parameter.spread and _is_whole(args[0]):
            count = next((i for i, a in enumerate(args) if not _is_whole(a)), len(args))
            given[parameter.name] = args[:count]
            del args[:count]
        else:
            given[parameter.name] = args.pop(0)
    if args:
        raise TypeError(f"{name}: too many arguments, got {len(places) + len(args)}; "
                        f"expected {', '.join(p.name for p in places)}")
    known = {p.name: p for p in row}
    for word, value in kwargs.items():
        if word in given:
            raise TypeError(f"{name}: {word}: given twice")
        given[word] = value
    found = {}
    for word, value in given.items():
        parameter = known.get(word)
        if parameter is None:
            found[word] = value  # the operator's own name of it, or an error there
        elif parameter.kind == "-":
            if value is not None and value is not False:
                raise TypeError(f"{name}: {word}: not available, got {value!r}; expected None")
        elif parameter.kind == " ":
            if parameter.own in found:
                raise TypeError(f"{name}: {word}: given twice")
            found[parameter.own] = value
    for parameter in row:
        if parameter.default is not None and found.get(parameter.own) is None:
            found[parameter.own] = parameter.default[0]
    return found
