/* Measurements of a program, put before the rules of the library: see stepwatch/judge.h. */
#include <math.h>
#include <string.h>

#include <stepwatch/judge.h>

#include "core.h"
#include "run.h"

/* The subjects of one call. Names live as long as `items`, which holds them. */
struct subjects {
    sw_subject *all;
    PyObject **items;          /* of each subject, a list of (name, value) */
    sw_finding_number *number; /* of all subjects, one after the other */
    core_text *names;
    size_t count, numbers;
};

static void forget(struct subjects *it)
{
    for (size_t i = 0; i < it->numbers; i++) {
        core_text_release(&it->names[i]);
    }
    for (size_t i = 0; i < it->count; i++) {
        Py_XDECREF(it->items[i]);
    }
    PyMem_Free(it->all);
    PyMem_Free(it->items);
    PyMem_Free(it->number);
    PyMem_Free(it->names);
}

static int kind_of(PyObject *name, enum sw_subject_kind *out)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text && PyErr_Occurred()) {
        return -1;
    }
    for (int kind = 0; text && kind < SW_SUBJECT_KINDS; kind++) {
        if (strcmp(text, sw_subject_kind_name((enum sw_subject_kind)kind)) == 0) {
            *out = (enum sw_subject_kind)kind;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "%R is no kind of subject", name);
    return -1;
}

/* A number, or NaN for None. */
static int value_of(PyObject *value, double *out)
{
    *out = value == Py_None ? NAN : PyFloat_AsDouble(value);
    return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* How many numbers there are; what `given` says of each subject is kept in `items`. */
static int take_items(struct subjects *it, PyObject *given, size_t *numbers)
{
    *numbers = 0;
    for (size_t i = 0; i < it->count; i++) {
        PyObject *each = PyTuple_GET_ITEM(given, (Py_ssize_t)i);
        if (!PyTuple_Check(each) || PyTuple_GET_SIZE(each) != 2 ||
            !PyDict_Check(PyTuple_GET_ITEM(each, 1))) {
            PyErr_SetString(PyExc_TypeError, "a subject is (kind, {name: number})");
            return -1;
        }
        if (kind_of(PyTuple_GET_ITEM(each, 0), &it->all[i].kind) != 0) {
            return -1;
        }
        it->items[i] = PyDict_Items(PyTuple_GET_ITEM(each, 1));
        if (!it->items[i]) {
            return -1;
        }
        *numbers += (size_t)PyList_GET_SIZE(it->items[i]);
    }
    return 0;
}

static int take(struct subjects *it, PyObject *given)
{
    size_t numbers;
    it->count = (size_t)PyTuple_GET_SIZE(given);
    it->all = PyMem_Calloc(it->count + 1, sizeof *it->all);
    it->items = PyMem_Calloc(it->count + 1, sizeof *it->items);
    if (!it->all || !it->items) {
        it->count = it->items ? it->count : 0;
        PyErr_NoMemory();
        return -1;
    }
    if (take_items(it, given, &numbers) != 0) {
        return -1;
    }
    it->number = PyMem_Calloc(numbers + 1, sizeof *it->number);
    it->names = PyMem_Calloc(numbers + 1, sizeof *it->names);
    if (!it->number || !it->names) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < it->count; i++) {
        it->all[i].numbers = &it->number[it->numbers];
        it->all[i].count = (size_t)PyList_GET_SIZE(it->items[i]);
        for (size_t j = 0; j < it->all[i].count; j++) {
            PyObject *pair = PyList_GET_ITEM(it->items[i], (Py_ssize_t)j);
            sw_finding_number *number = &it->number[it->numbers];
            if (core_text_get(PyTuple_GET_ITEM(pair, 0), "a number's name",
                              &it->names[it->numbers]) != 0) {
                return -1;
            }
            number->name = it->names[it->numbers++].data;
            if (value_of(PyTuple_GET_ITEM(pair, 1), &number->value) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* --- Judgements as Python has them ------------------------------------------------ */

static PyObject *as_object(const sw_judgement_number *number)
{
    if (isnan(number->value)) {
        Py_RETURN_NONE;
    }
    return number->is_whole ? PyLong_FromDouble(number->value)
                            : PyFloat_FromDouble(number->value);
}

/* The numbers that are evidence, or those that are not. */
static PyObject *numbers_of(const sw_judgement *it, bool evidence)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; found && i < it->number_count; i++) {
        if (it->numbers[i].is_evidence == evidence) {
            PyObject *value = as_object(&it->numbers[i]);
            if (!value || PyDict_SetItemString(found, it->numbers[i].name, value) != 0) {
                Py_CLEAR(found);
            }
            Py_XDECREF(value);
        }
    }
    return found;
}

static PyObject *judgement_of(const sw_judgement *it)
{
    return Py_BuildValue("(zzzsdnznNN)", it->rule, it->kind, it->text,
                         sw_severity_name(it->severity), it->share,
                         (Py_ssize_t)it->subject, it->part, (Py_ssize_t)it->gain,
                         numbers_of(it, true), numbers_of(it, false));
}

static PyObject *judge(PyObject *Py_UNUSED(module), PyObject *argument)
{
    struct subjects subjects = {0};
    sw_judgement *found = NULL;
    sw_error_info info = {0};
    size_t count = 0;
    int error;
    PyObject *result = NULL, *given = PySequence_Tuple(argument);
    if (!given || take(&subjects, given) != 0) {
        goto out;
    }
    error = sw_judge(subjects.all, subjects.count, &found, &count, &info);
    if (error) {
        core_raise(error, &info);
        goto out;
    }
    result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *each = judgement_of(&found[i]);
        if (!each) {
            Py_CLEAR(result);
            break;
        }
        PyList_SET_ITEM(result, (Py_ssize_t)i, each);
    }
out:
    sw_judgements_free(found);
    forget(&subjects);
    Py_XDECREF(given);
    return result;
}

static PyMethodDef methods[] = {
    {"judge", judge, METH_O,
     "judge(subjects, /)\n--\n\nPut named numbers before the rules: [(kind, {name: "
     "number})]."},
    {NULL, NULL, 0, NULL},
};

int core_judge_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
