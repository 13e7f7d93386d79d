"""Symbols as text: files of every version read as the newest would have written them; what is no graph is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minnp.errors import SymbolError
from minnp.symbol.json_format import Node, SymbolFile, parse_json, to_json

pytestmark = [
    pytest.mark.host("no array is computed"),
    pytest.mark.either("about files"),
]


def variable_of_08(name: str, **more: Any) -> dict[str, Any]:
    return {"op": "null", "param": {}, "name": name, "inputs": [], "backward_source_id": -1, **more}


def node_of_08(op: str, name: str, inputs: list[list[int]], param: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"op": op, "param": param, "name": name, "inputs": inputs, "backward_source_id": -1, **more}


NORM = {"eps": "0.001", "fix_gamma": "True", "momentum": "0.9", "use_global_stats": "False"}
# What MXNet 0.8 wrote: no auxiliary states, inputs of two numbers, parameters and attributes apart, no version.
OLD = {
    "nodes": [
        variable_of_08("data"),
        variable_of_08("fc_weight", attr={"lr_mult": "3", "mood": "good"}),
        variable_of_08("fc_bias", attr={"weight_wd_mult": "0.5"}),
        node_of_08("FullyConnected", "fc", [[0, 0], [1, 0], [2, 0]], {"no_bias": "False", "num_hidden": "4"},
                   attr={"ctx_group": "a", "weight_wd_mult": "0.5", "lr_mult": "2"}),
        variable_of_08("bn_gamma"),
        variable_of_08("bn_beta"),
        node_of_08("BatchNorm", "bn", [[3, 0], [4, 0], [5, 0]], NORM, attr={"ctx_group": "a"}),
        variable_of_08("slope"),
        node_of_08("LeakyReLU", "relu", [[6, 0], [7, 0]], {"act_type": "prelu", "slope": "0.25"}),
        node_of_08("IdentityAttachKLSparseReg", "kl", [[8, 0]], {"sparseness_target": "0.1"}),
        node_of_08("argmax", "best", [[9, 0]], {"axis": "-1"}),
    ],
    "arg_nodes": [0, 1, 2, 4, 5, 7],
    "heads": [[10, 0], [6, 0]],
}  # fmt: skip
LOOP = {
    "nodes": [
        {"op": "null", "name": "i", "inputs": []},
        {"op": "null", "name": "s", "inputs": []},
        {
            "op": "_foreach",
            "name": "loop",
            "attrs": {
                "in_data_locs": "[0]",
                "in_state_locs": "[1]",
                "num_args": "3",
                "num_out_data": "1",
                "num_outputs": "2",
                "remain_locs": "[]",
            },
            "inputs": [[0, 0, 0], [1, 0, 0]],
            "subgraphs": [
                {
                    "nodes": [
                        {"op": "null", "name": "x", "attrs": {"__subgraph_name__": "loop"}, "inputs": []},
                        {"op": "null", "name": "h", "attrs": {"__subgraph_name__": "loop"}, "inputs": []},
                        {"op": "elemwise_add", "name": "p", "inputs": [[0, 0, 0], [1, 0, 0]]},
                        {"op": "exp", "name": "e", "inputs": [[2, 0, 0]]},
                    ],
                    "arg_nodes": [0, 1],
                    "node_row_ptr": [0, 1, 2, 3, 4],
                    "heads": [[2, 0, 0], [3, 0, 0]],
                }
            ],
        },
    ],
    "arg_nodes": [0, 1],
    "node_row_ptr": [0, 1, 2, 4],
    "heads": [[2, 0, 0], [2, 1, 0]],
    "attrs": {"is_np_shape": ["int", 1], "mxnet_version": ["int", 10901]},
}


def test_a_file_of_08_reads_as_191_would_have_written_it():
    file = parse_json(json.dumps(OLD))
    nodes = {node.name: node for node in file.nodes}
    assert list(nodes) == ["data", "fc_weight", "fc_bias", "fc", "bn_gamma", "bn_beta", "bn_moving_mean",
                           "bn_moving_var", "bn", "slope", "relu", "kl_moving_avg", "kl", "best"]  # fmt: skip
    assert nodes["fc_weight"].attrs == {"mood": "good", "__lr_mult__": "3", "__wd_mult__": "0.5"}
    assert nodes["fc_bias"].attrs == {"weight_wd_mult": "0.5"}  # not about an input of it: it has none
    assert nodes["fc"].attrs == {
        "no_bias": "False",
        "num_hidden": "4",
        "__ctx_group__": "a",
        "__lr_mult__": "2",
    }
    assert nodes["bn"].inputs == [(3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]
    assert nodes["bn_moving_mean"].attrs == {**NORM, "__ctx_group__": "a", "__init__": '["zero", {}]'}
    assert nodes["bn_moving_var"].attrs == {**NORM, "__ctx_group__": "a", "__init__": '["one", {}]'}
    assert nodes["slope"].attrs == {"__init__": '["Constant", {"value": 0.25}]'}
    assert nodes["kl_moving_avg"].attrs["__init__"] == '["zero", {}]'
    assert nodes["best"] == Node("argmax", "best", {}, [(12, 0)])
    assert file.heads == [(13, 0), (8, 0)]
    assert file.arg_nodes == [0, 1, 2, 4, 5, 6, 7, 9, 11]


@pytest.mark.parametrize(
    ("version", "attrs"),
    [(901, '["zero", {}]'), (903, '["zero", {}]'), (904, None), (905, None), (10901, None)],
)
def test_from_094_on_a_file_says_itself_how_states_begin(version, attrs):
    names = ["x", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    nodes = [{"op": "null", "name": n, "inputs": []} for n in names]
    nodes.append({"op": "BatchNorm", "name": "bn", "attr": NORM, "inputs": [[i, 0, 0] for i in range(5)]})
    nodes.append({"op": "argmin", "name": "least", "attr": {"axis": "-1"}, "inputs": [[5, 0, 0]]})
    file = parse_json(json.dumps({"nodes": nodes, "heads": [[6, 0, 0]], "attrs": {"mxnet_version": ["int", version]}}))
    assert len(file.nodes) == 7 and file.attrs == {"mxnet_version": version}
    assert file.nodes[3].attrs.get("__init__") == attrs
    assert file.nodes[6].attrs == ({"axis": "-1"} if version >= 905 else {})


def test_parameters_are_read_under_each_of_their_names():
    for name in ("param", "attr", "attrs"):
        nodes = [variable_of_08("x"), {"op": "sum", "name": "s", name: {"axis": "1"}, "inputs": [[0, 0]]}]
        assert parse_json(json.dumps({"nodes": nodes, "head": [[1, 0]]})).nodes[1].attrs == {"axis": "1"}
    both = node_of_08("sum", "s", [[0, 0]], {"axis": "1", "keepdims": "0"}, attr={"axis": "2"})
    file = parse_json(json.dumps({"nodes": [variable_of_08("x"), both], "heads": [[1, 0]]}))
    assert file.nodes[1].attrs == {"axis": "2", "keepdims": "0"}


def test_what_is_said_of_an_input_that_is_no_variable_stays_where_it_is():
    nodes = [
        variable_of_08("x"),
        node_of_08("exp", "e", [[0, 0]], {}),
        node_of_08("FullyConnected", "f", [[0, 0], [1, 0]], {"no_bias": "True"},
                   attr={"weight_lr_mult": "2", "bias_lr_mult": "3", "other_lr_mult": "4"}),
    ]  # fmt: skip
    file = parse_json(json.dumps({"nodes": nodes, "heads": [[2, 0]]}))
    assert file.nodes[2].attrs == {
        "no_bias": "True", "weight_lr_mult": "2", "bias_lr_mult": "3", "other_lr_mult": "4",
    }  # fmt: skip


def test_a_symbol_is_written_as_191_writes_it():
    file = parse_json(json.dumps(LOOP))
    assert file.attrs == {"is_np_shape": 1, "mxnet_version": 10901}
    assert file.nodes[2].subgraphs[0].nodes[3] == Node("exp", "e", {}, [(2, 0)])
    assert json.loads(to_json(file, results=lambda node: 1 + (node.op == "_foreach"))) == LOOP
    assert "node_row_ptr" not in json.loads(to_json(file))
    assert parse_json(to_json(file)) == file
    old = parse_json(json.dumps(OLD))
    again = parse_json(to_json(old))
    assert (again.nodes, again.heads) == (old.nodes, old.heads)  # now of the newest version: nothing to upgrade


VARIABLE = {"op": "null", "name": "x", "inputs": []}


def with_nodes(*nodes: Any, heads: Any = ((0, 0),), **more: Any) -> str:
    return json.dumps({"nodes": nodes, "heads": heads, **more})


def calls(**changed: Any) -> dict[str, Any]:
    return {"op": "exp", "name": "e", "inputs": [[0, 0]]} | changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        (b"\xff\xfe{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", r"the symbol should be an object; found \[\]"),
        ("{}", "nodes should be a list that is not empty; found nothing"),
        ('{"nodes": 3}', "the symbol.nodes should be a list; found 3"),
        (with_nodes(VARIABLE, heads=[]), "heads should be a list that is not empty"),
        (with_nodes(VARIABLE, heads=3), "heads should be a list; found 3"),
        (with_nodes(VARIABLE, heads=[[1, 0]]), r"heads\[0\] should be one of the 1 nodes before it; found node 1"),
        (with_nodes(VARIABLE, heads=[[-1, 0]]), r"heads\[0\] should be \[node, result\]"),
        (with_nodes(VARIABLE, heads=[[True, 0]]), r"heads\[0\] should be \[node, result\]"),
        (with_nodes(VARIABLE, heads=[[0]]), r"heads\[0\] should be \[node, result\]"),
        (with_nodes(3), r"nodes\[0\] should be an object; found 3"),
        (with_nodes({"op": "null", "inputs": []}), r"nodes\[0\].name should be a text; found nothing"),
        (with_nodes({"op": "null", "name": "x"}), r"nodes\[0\].inputs should be a list; found nothing"),
        (with_nodes({**VARIABLE, "op": None}), r"nodes\[0\].op should be a text; found None"),
        (with_nodes({**VARIABLE, "atrs": {}}), r"nodes\[0\] should be only .*attrs.*; found 'atrs'"),
        (with_nodes({**VARIABLE, "attrs": {"a": 3}}), r"nodes\[0\] \('x'\).attrs\['a'\] should be a text; found 3"),
        (with_nodes({**VARIABLE, "inputs": [[0, 0]]}), r"inputs\[0\] should be one of the 0 nodes before it"),
        (with_nodes(VARIABLE, {**VARIABLE, "inputs": [[0, 0]]}), "should be none, as it is a variable"),
        (with_nodes(VARIABLE, calls(inputs=[[1, 0]])), r"nodes\[1\] \('e'\).inputs\[0\] .* 1 nodes .* found node 1"),
        (with_nodes(VARIABLE, calls(inputs=[[2, 0]]), calls(inputs=[[1, 0]])), r"inputs\[0\] .* found node 2"),
        (with_nodes(VARIABLE, calls(control_deps=[0])), "control_deps"),
        (with_nodes(VARIABLE, {**VARIABLE, "backward_source_id": 0}), "is the gradient of another node"),
        (with_nodes(VARIABLE, calls(subgraphs=[{}])), r"subgraphs\[0\].nodes should be a list that is not empty"),
        (with_nodes(VARIABLE, arg_nodes=[1]), r"arg_nodes\[0\] should be the number of a variable among 1 nodes"),
        (with_nodes(VARIABLE, attrs={"mxnet_version": 3}), r"attrs\['mxnet_version'\] should be .* found 3"),
        (with_nodes(VARIABLE, attrs={"mxnet_version": ["str", "3"]}), r"attrs\['mxnet_version'\] should be .*number"),
    ],
)  # fmt: skip
def test_what_is_no_graph_is_refused_and_the_error_says_where(text, message):
    with pytest.raises(SymbolError, match=message):
        parse_json(text)


def legal(file: SymbolFile) -> bool:
    """Whether every input is a result of an earlier node, and everything has its type."""
    for i, node in enumerate(file.nodes):
        assert isinstance(node.op, str) and isinstance(node.name, str)
        assert all(isinstance(t, str) for item in node.attrs.items() for t in item)
        assert all(0 <= at < i and result >= 0 for at, result in node.inputs)
        assert all(map(legal, node.subgraphs))
    assert file.heads and all(0 <= at < len(file.nodes) and result >= 0 for at, result in file.heads)
    return True


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["op", "nodes", "name", "a"]), part),
    max_leaves=5,
)


@pytest.mark.long
@settings(max_examples=400)
@given(st.data(), st.sampled_from([OLD, LOOP]))
def test_whatever_value_is_put_anywhere_a_graph_is_read_or_an_error_raised(data, document):
    document = json.loads(json.dumps(document))
    at = document
    while True:  # walk to some place in the document, and put a value there
        where = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[where], (dict, list)) or not at[where] or data.draw(st.integers(0, 4)) == 0:
            break
        at = at[where]
    if data.draw(st.booleans()) and isinstance(at, dict):
        del at[where]
    else:
        at[where] = data.draw(anything)
    try:
        file = parse_json(json.dumps(document))
    except SymbolError as error:
        assert len(str(error)) < 600
    else:
        assert legal(file)
        assert legal(parse_json(to_json(file)))


@pytest.mark.long
@settings(max_examples=400)
@given(st.sampled_from([OLD, LOOP]), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4),
       st.integers(0, 5000))  # fmt: skip
@example(LOOP, [], 5000)
def test_whatever_bytes_are_changed_or_cut_a_graph_is_read_or_an_error_raised(document, changes, length):
    text = bytearray(json.dumps(document).encode())
    for at, byte in changes:
        text[at % len(text)] = byte
    try:
        file = parse_json(bytes(text[:length]))
    except SymbolError:
        return
    assert legal(file)


def test_mxnet_reads_old_files_and_ours_as_we_do():
    mx = pytest.importorskip("mxnet", reason="MXNet's own reading is what ours is compared with")
    for document in (OLD, LOOP):
        text = json.dumps(document)
        theirs = parse_json(mx.sym.load_json(text).tojson())
        ours = parse_json(text)
        assert (ours.nodes, ours.heads) == (theirs.nodes, theirs.heads)
        back = parse_json(mx.sym.load_json(to_json(ours)).tojson())
        assert (back.nodes, back.heads) == (ours.nodes, ours.heads)
