"""The programs of the articles that this project follows, with `minpy`, `torch.fx`, `autograd` read as minnp.

Each is a file of tests/sources, which runs alone, in a child of a process that has imported minnp or that and mxnet,
and prints what it must.
"""

import importlib.util

import pytest
from alone import ROOT, run_forked

SOURCES = sorted((ROOT / "tests" / "sources").glob("*.py"))
OF_MXNET = ("minpy_symbol", "minpy_mixed_net", "minpy_policies", "mxnet_symbols")
NEEDS = {"fx_lower_to_torch": "torch"} | dict.fromkeys(OF_MXNET, "mxnet")
PRINTS = {
    "autograd_readme": """
0.4199743416
0.4199743
1 (200,) 0.998764
2 (200,) 0.070236
3 (200,) -1.990119
4 (200,) -0.560845
5 (200,) 15.832227
6 (200,) 9.510429
""",
    "autograd_tutorial": """
initial loss 2.7726
trained loss 1.0673
slope [0.     8.2485 0.    ]
15.0 {'w': array([ 6., 12.]), 'b': array(5.)}
[[2.0, 0.0], [0.0, 4.0]] [[0.0, 1.0], [1.0, 0.0]]
""",
    "fx_capture": """
x = placeholder target=x args=()
relu = call_function target=relu args=(x,)
negative = call_function target=negative args=(relu,)
output = output target=output args=(negative,)
from minnp import npx


def forward(self, x):
    relu = npx.relu(x)
    negative = np.negative(relu)
    return negative

[-0. -2.]
[('call_method', 'clip'), ('call_method', 'sum')]
""",
    "fx_draw_and_split": """
[('placeholder', 'x'), ('call_module', 'submod_0'), ('call_module', 'submod_1'), ('output', 'output')]
True
True
""",
    "fx_fusion": """
True True
['conv_act', 'conv_act_1']
True
""",
    "fx_lower_to_torch": """
True True
True
True
""",
    "fx_lowering": """
[('call_module', 'part_1'), ('call_module', 'part_2'), ('call_module', 'part_3')]
True True
""",
    "fx_passes": """
12.0
['x', 'gt', 'mul', 'add', 'output'] [1.  1.5 3. ]
['matmul', 'output', 'tanh', 'x'] True
True
True True
""",
    "fx_quantise": """
['npx.quantized_linear', 'npx.quantized_linear']
within 3 %: True
True
""",
    "fx_replace_activation": """
['x', 'gelu', 'negative', 'mul', 'gelu_1', 'add', 'output']
True True
True
True
2 True
""",
    "fx_shapes_and_flops": """
True
[(2, 3, 8, 8), (2, 8, 8, 8), (2, 8, 8, 8), (2, 512), (2, 10)]
77844
{'_0': 56320, '_1': 1024, '_2': 0, '_3': 20500}
True 8192
""",
    "fx_step_of_sequential": """
True
['placeholder', 'call_function', 'call_function', 'call_function', 'output']
[('call_module', 'act')]
True
True
(5, 2) (5, 4)
accuracy above 0.9: True
""",
    "minpy_autograd": """
16 8.0 2.0
[array(3.), array(6.), array(-1.)]
[array(3.), array(6.), array(-1.)] 11.0
(100, 50)
(50, 3) (1, 1) True
""",
    "minpy_branches": """
[[0. 0. 0.]
 [0. 0. 0.]]
3.0 6.0
inside: 21.0
36.0 21.0
""",
    "minpy_customop": """
[[0.2447 0.6652 0.09  ]
 [0.3333 0.3333 0.3333]]
[[ 0.2346 -0.2664  0.0318]
 [ 0.6667  0.6667 -1.3333]]
[0.693147 0.693147] 0.960906
""",
    "minpy_declared": """
[3. 3. 3. 3. 3. 3. 3. 3. 3. 3.]
""",
    "minpy_fallback": """
[[1.3133 1.3133 1.3133]
 [1.3133 1.3133 1.3133]]
[[0.2689 0.2689 0.2689]
 [0.2689 0.2689 0.2689]]
""",
    "minpy_gradient": """
1.0
2.0
""",
    "minpy_imperative": """
[2. 2. 2. 2. 2. 2. 2. 2. 2. 2.]
[3. 3. 3. 3. 3. 3. 3. 3. 3. 3.]
""",
    "minpy_mixed_net": """
['b1', 'b2', 'conv_bias', 'conv_weight', 'w1', 'w2']
accuracy above 0.9: True
""",
    "minpy_numpy": """
[[-2. -2. -2.]
 [-2. -2. -2.]]
[[-0.7568 -0.7568]
 [-0.7568 -0.7568]
 [-0.7568 -0.7568]]
[[2. 2. 2.]
 [2. 2. 2.]]
[[ 0  1]
 [-1 -1]
 [ 4  5]]
[[ 1]
 [-1]
 [ 5]]
90 43.0
(64, 64) cpu(0)
""",
    "minpy_policies": """
0.0
200.0 auto
0.0
(1000, 50) 1000.0 prefer_mxnet
""",
    "minpy_rnn": """
falls below a tenth: True
""",
    "minpy_symbol": """
(8, 32, 8, 8) 1.0
(32, 3, 3, 3) 6.707
""",
    "minpy_two_layer_net": """
accuracy above 0.9: True
""",
    "mxnet_symbols": """
[3.0, 3.0, 3.0]
['data', 'fc1_weight', 'fc1_bias', 'fc2_weight', 'fc2_bias', 'out_label']
[(4, 10)]
True
{'fc1_weight': (128, 20), 'fc1_bias': (128,), 'fc2_weight': (10, 128), 'fc2_bias': (10,)}
True
[1.0, 1.0] [2.0, 2.0]
""",
    "survey_define_by_run": """
16.0 [[8.0]] [[2.0]]
falls below a hundredth: True
""",
    "survey_logistic": """
accuracy above 0.97: True
""",
    "survey_tanh": """
-1.0 -1.0
1 0.78644773
2 -0.72686198
3 -0.56520929
4 3.95221956
11.652 5.5 [5.5, 1.716]
[1.0, 2.4, -2.688, 9.066086]
""",
}


def test_every_program_has_its_results():
    assert sorted(PRINTS) == [path.stem for path in SOURCES]


@pytest.mark.host("the programs print what the default policy gives")
@pytest.mark.either("whole programs, of functions that other tests call both ways")
@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=pytest.mark.dealt(*["old"] * (path.stem in OF_MXNET))) for path in SOURCES],
)
def test_a_program_prints_what_its_source_says(path):
    library = NEEDS.get(path.stem)
    if library and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    modules = ("minnp.fx", "minnp.nn", "minnp.symbol", *[library] * (library == "mxnet"))
    lines = run_forked(path, modules=modules).splitlines()
    said = [line for line in lines if not line.startswith(("(Iteration", "(Epoch"))]
    assert said == PRINTS[path.stem].strip("\n").splitlines()
