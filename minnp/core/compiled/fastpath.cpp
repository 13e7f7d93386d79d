/* The fast path: operators, indexing, conversions, attributes, functions and methods of our arrays in C++.

   Arrays on the host, and arguments that are such, numbers or other plain things, go straight to NumPy, and the result is
   wrapped; a row of arrays that a gradient's tape watches writes its node there; on a device, rows go to its kernels; the walk
   backwards calls rules. Everything else (another trace, an array so large that core/cpu does better, a capture or a policy
   that watches, a foreign class) is left to the general path, the Python function or slot that was there before; so nothing
   here decides what a call means. Optional: where no compiler was at hand the general path does all the work.

   What an argument is, a `Value`, is decided once per call and handed down (arrays.hpp). One function records a node (`record`,
   tape.hpp), one calls a device's kernel (`run_on_device`, device.hpp), one steps backwards (`step_back`, backward.hpp). What
   is read of Python is in one table (bindings.hpp).

   One unit of compilation, a header for each part: the short functions of one are inlined in another. */
#include "attributes.hpp"
#include "backward.hpp"
#include "conversions.hpp"
#include "dispatch.hpp"

/* ------------------------------------------------------------------ arrays */
/* exchange(a, b): each of two of NumPy's arrays, of any class, shows what the other one did; both stay the objects they are,
   with their own weak references and exported buffers. */
static PyObject *exchange(PyObject *, PyObject *args) {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!", Host, &a, Host, &b))
        return nullptr;
    Fields &mine = *fields(a), &theirs = *fields(b);
    std::swap(mine.data, theirs.data), std::swap(mine.nd, theirs.nd), std::swap(mine.dimensions, theirs.dimensions);
    std::swap(mine.strides, theirs.strides), std::swap(mine.base, theirs.base), std::swap(mine.descr, theirs.descr);
    std::swap(mine.flags, theirs.flags), std::swap(mine.mem_handler, theirs.mem_handler);
    Py_RETURN_NONE;
}

/* on_host(a, root=None): array.on_host. */
static PyObject *on_host(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n < 1 || n > 2 || !is_host(args[0]))
        return PyErr_Format(PyExc_TypeError, "on_host() takes an array of NumPy's own class, and a root");
    return guarded([=] { return array_on(borrow(args[0]), n == 2 ? args[1] : Py_None); });
}

/* views_of(root): array.views_of. */
static PyObject *views_of(PyObject *, PyObject *root) {
    return guarded([=] {
        Ref views = made(PyList_New(0));
        PyObject *h = Py_IS_TYPE(root, Ours) ? links(root).next : nullptr;
        for (; h != nullptr; h = links(h).next)
            if (slot(h, host_at) != Py_None)
                check(PyList_Append(views, h));
        return views;
    });
}

/* link(h, root): array.link. */
static PyObject *link(PyObject *, PyObject *args) {
    PyObject *h, *root;
    if (!PyArg_ParseTuple(args, "O!O!", Ours, &h, Ours, &root))
        return nullptr;
    if (links(h).last == nullptr && h != root)
        link_view(h, root);
    Py_RETURN_NONE;
}

static PyObject *get_host(PyObject *h, void *) {
    return guarded([=] {
        if (slot(h, host_at) == nullptr)
            call(take_over, h);
        return borrow(slot(h, host_at));
    });
}

static int put_host(PyObject *h, PyObject *a, void *) {
    return guarded_status([=] {
        if (a == nullptr)
            fail(PyExc_AttributeError, "_host");
        call(set_host, h, a);
        return 0;
    });
}

/* tp_getattro: of an array that NumPy made, once more with what take_over gives it. */
static PyObject *get_attribute(PyObject *h, PyObject *name) {
    PyObject *x = PyObject_GenericGetAttr(h, name);
    if (x != nullptr || slot(h, host_at) != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return x;
    PyErr_Clear();
    return guarded([=] { return call(take_over, h), made(PyObject_GenericGetAttr(h, name)); });
}

static PyGetSetDef host_property = {"_host", get_host, put_host, nullptr, nullptr};

/* bind_arrays(): what arrays of ours need, before there is one. */
static PyObject *bind_arrays(PyObject *, PyObject *) {
    return guarded([=] {
        bind(of_arrays);
        numpys_fields = host_at - virtual_host_at;
        if (Host->tp_basicsize != (Py_ssize_t)sizeof(Fields))
            fail(PyExc_ImportError, "minnp's C part was built for another layout of numpy.ndarray; install minnp again");
        if (virtual_root_at != root_at - numpys_fields || virtual_steps_at != steps_at - numpys_fields ||
            virtual_seen_at != seen_at - numpys_fields || virtual_value_at != value_at - numpys_fields)
            fail(PyExc_ImportError, "the slots of minnp's VirtualArray do not lie as those of its ndarray");
        links_at = Ours->tp_basicsize, Ours->tp_basicsize += sizeof(Links);
        Ours->tp_dealloc = Virtual->tp_dealloc = array_dealloc;
        Ours->tp_alloc = Virtual->tp_alloc = array_alloc;
        Ours->tp_getattro = get_attribute;
        Ref property = made(PyDescr_NewGetSet(Ours, &host_property));
        check(PyObject_SetAttrString((PyObject *)Ours, "_host", property));
        return borrow(Py_None);
    });
}

/* ------------------------------------------------------------------ calls */
static void give_slots(PyTypeObject *type) {
    give_operators(type);
    type->tp_iter = iterator;
    type->tp_as_mapping->mp_ass_subscript = assign, type->tp_as_mapping->mp_subscript = subscript;
    type->tp_as_mapping->mp_length = type->tp_as_sequence->sq_length = length;
    type->tp_as_sequence->sq_item = item;
    type->tp_as_sequence->sq_concat = Host->tp_as_sequence->sq_concat; /* NumPy's refusal, for operator.concat */
    PyNumberMethods *number = type->tp_as_number;
    number->nb_bool = truth, number->nb_int = converted<PyNumber_Long, general_int>;
    number->nb_float = converted<PyNumber_Float, general_float>, number->nb_index = converted<PyNumber_Index, general_index>;
    if (type->tp_as_buffer != nullptr)
        type->tp_as_buffer->bf_getbuffer = get_buffer;
    PyType_Modified(type);
}

/* What on_device.slot_of puts into a slot, in the order that this extension reads it. */
static void check_offers() {
    Ref offered = imported(ROWS "on_device", "OFFERED");
    for (Py_ssize_t i = 0; i < NUMBERS - PREPARED; i++)
        if (PySequence_Size(offered) != NUMBERS - PREPARED ||
            PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(offered.get(), i), OFFERED[i]) != 0)
            fail(PyExc_ImportError, "on_device.OFFERED is not what minnp's C part reads");
}

/* bind_calls(): put the slots above into the classes of arrays, over those that call the Python methods of `Array`, the class
   they derive from. Setting a method later gives its slot back to Python. */
static PyObject *bind_calls(PyObject *, PyObject *) {
    return guarded([=] {
        bind(of_calls);
        check_offers();
        find_operators();
        Ref kernels = imported(TRANSFORMS "formulas", "strong"), strong = call(kernels);
        for (int i = 0; i < 3; i++) {
            strong_functions[i] = Py_NewRef(PyTuple_GET_ITEM(strong.get(), i));
            weak_functions[i] = (PyObject *)operators[i == 1 ? TRUEDIV : MUL].ufunc;
        }
        dtypes = made(PyDict_New()).release();
        PyNumberMethods *number = Virtual->tp_as_number;
        general_setitem = Virtual->tp_as_mapping->mp_ass_subscript, general_len = Virtual->tp_as_mapping->mp_length;
        general_item = Virtual->tp_as_sequence->sq_item, general_iter = Virtual->tp_iter;
        general_bool = number->nb_bool, general_int = number->nb_int;
        general_float = number->nb_float, general_index = number->nb_index;
        general_getitem = put_before(methods, "__getitem__", getitem_call);
        put_before(methods, "__array_ufunc__", ufunc_call);
        give_slots(Ours), give_slots(Virtual), give_flat_slots();
        Ours->tp_name = "numpy.ndarray"; /* which the interpreter's messages tell, as they do for NumPy's class */
        general_row_call = std::exchange(Row->tp_call, row_call);
        PyType_Modified(Row);
        ready = true;
        return borrow(Py_None);
    });
}

/* end(): the interpreter may end from now on. */
static PyObject *end(PyObject *, PyObject *) {
    near_end = true;
    Py_RETURN_NONE;
}

/* fast_rows(on): whether calls of rows take the fast path. */
static PyObject *fast_rows(PyObject *, PyObject *on) {
    Row->tp_call = on == Py_True ? row_call : general_row_call;
    PyType_Modified(Row);
    Py_RETURN_NONE;
}

static PyMethodDef module_functions[] = {
    {"bind_arrays", bind_arrays, METH_NOARGS, nullptr},
    {"bind_calls", bind_calls, METH_NOARGS, nullptr},
    {"end", end, METH_NOARGS, nullptr},
    {"exchange", exchange, METH_VARARGS, nullptr},
    {"link", link, METH_VARARGS, nullptr},
    {"on_host", (PyCFunction)(void (*)(void))on_host, METH_FASTCALL, nullptr},
    {"views_of", views_of, METH_O, nullptr},
    {"function", make_function, METH_VARARGS, nullptr},
    {"set_row", set_row, METH_VARARGS, nullptr},
    {"attribute", make_attribute, METH_VARARGS, nullptr},
    {"index_kept", index_kept, METH_VARARGS, nullptr},
    {"strong", make_strong, METH_VARARGS, nullptr},
    {"sweep", sweep, METH_VARARGS, nullptr},
    {"loop", make_loop, METH_VARARGS, nullptr},
    {"plan", make_plan, METH_VARARGS, nullptr},
    {"fast_rows", fast_rows, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, "minnp.core.compiled._fastpath", nullptr, -1, module_functions,
                                        nullptr, nullptr, nullptr, nullptr};

static PyMemberDef counter_members[] = {{"calls", T_PYSSIZET, offsetof(Counter, calls), 0, nullptr}, {nullptr, 0, 0, 0, nullptr}};

static void ready_counter() {
    CounterType.tp_name = "minnp.core.compiled._fastpath.Counter";
    CounterType.tp_basicsize = sizeof(Counter);
    CounterType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    CounterType.tp_members = counter_members;
    CounterType.tp_new = PyType_GenericNew;
    check(PyType_Ready(&CounterType));
}

static const struct {
    const char *name;
    long value;
} constants[] = { /* which Python reads, install.py and compiled/__init__.py */
    {"SOURCE", SOURCE}, {"OF_OBJECT", OF_OBJECT}, {"BOUND", BOUND}, {"IDENTITY", IDENTITY}, {"MASKED", MASKED},
    {"LIST", LIST}, {"SPREAD", SPREAD}, {"CASTS", CASTS}, {"VECTORS", VECTORS}, {"UNTRACED", UNTRACED},
    {"WHOLE", WHOLE}, {"RAVELS", RAVELS}, {"SIDE_BY_SIDE", SIDE_BY_SIDE}, {"BELOW", BELOW},
    {"SEVERAL", SEVERAL}, {"PARTS", PARTS}, {"NUMBER", NUMBER}, {"MOST_GUARDED", MOST_GUARDED},
};

/* Let freed arrays of up to 31 MB be used again, instead of going back to the system.
 *
 * glibc maps what is above a threshold of 128 KB, and every page of it is then a fault at the first write: a temporary of
 * 1 MB costs its zeroing by the kernel each time. The threshold rises to the largest mapped block that was freed (mallopt(3),
 * "dynamic mmap threshold", at most 32 MB), which most programs reach by and by. One block that nobody touches raises it. */
static void keep_freed_memory() {
#ifdef __GLIBC__
    void *volatile block = malloc(31u << 20); /* volatile: the compiler removes a pair that it sees through */
    free(block);
#endif
}

PyMODINIT_FUNC PyInit__fastpath(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "minnp.core.compiled._fastpath relies on the interpreter lock");
    return nullptr;
#else
    import_array();
    keep_freed_memory();
    return guarded([] {
        Ref module = made(PyModule_Create(&module_definition));
        ready_counter(), ready_number_node(), ready_functions(), ready_attributes(), find_small_dtypes(), ready_loops(), ready_dispatch();
        Host = &PyArray_Type;
        check(PyModule_AddObjectRef(module, "FastFunction", (PyObject *)&FastFunctionType));
        check(PyModule_AddObjectRef(module, "Function", (PyObject *)&PublicFunctionType));
        check(PyModule_AddObjectRef(module, "Dispatch", (PyObject *)&DispatchType));
        check(PyModule_AddObjectRef(module, "Counter", (PyObject *)&CounterType));
        for (const auto &constant : constants)
            check(PyModule_AddIntConstant(module, constant.name, constant.value));
        return module;
    });
#endif
}
