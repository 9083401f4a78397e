/* Records, rows and facts as adapters of frameworks put them, and the user's place in the program.
 *
 * All of it is quick to refuse while nothing is recorded. Names come as strings and are numbered here. */
#include "core.h"
#include "user_code.h"
#include <stepwatch/stepwatch.h>
#include <string.h>

static sw_section *gate;
static sw_clock_snapshot first_snapshot;

#define FAST(function) (PyCFunction)(void (*)(void)) function

/* --- Arguments ------------------------------------------------------------------------------ */

/* The next argument as a number; None and what is missing are 0. False with an exception set when it is something else. */
typedef struct arguments {
    PyObject *const *values;
    Py_ssize_t count;
    Py_ssize_t next;
    bool wrong;
} arguments;

static PyObject *argument_next(arguments *from)
{
    PyObject *value = from->next < from->count ? from->values[from->next] : NULL;
    from->next++;
    return value && value != Py_None && !from->wrong ? value : NULL;
}

static uint64_t argument_u64(arguments *from)
{
    PyObject *value = argument_next(from);
    if (!value) {
        return 0;
    }
    const uint64_t number = PyLong_AsUnsignedLongLongMask(value);
    from->wrong = number == UINT64_MAX && PyErr_Occurred();
    return number;
}

static uint32_t argument_u32(arguments *from)
{
    const uint64_t number = argument_u64(from);
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* The number of a name. */
static uint32_t name_of(PyObject *value, bool *wrong)
{
    core_text text;
    if (core_text_get(value, "name", &text) != 0) {
        *wrong = true;
        return 0;
    }
    const uint32_t id = text.length ? sw_name(text.data, (size_t)text.length) : 0;
    core_text_release(&text);
    return id;
}

static uint32_t argument_name(arguments *from)
{
    PyObject *value = argument_next(from);
    return value ? name_of(value, &from->wrong) : 0;
}

/* Whether the arguments are worth reading: something is recorded, and there are enough of them. */
static bool arguments_begin(arguments *out, const char *name, PyObject *const *args,
                            Py_ssize_t count, Py_ssize_t least)
{
    if (count < least) {
        PyErr_Format(PyExc_TypeError, "%s() takes at least %zd arguments, %zd given",
                     name, least, count);
        *out = (arguments){.wrong = true};
        return false;
    }
    *out = (arguments){.values = args, .count = count};
    return SW_GATE(gate);
}

static PyObject *arguments_end(const arguments *from)
{
    if (from->wrong) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static sw_record head_of(enum sw_record_kind kind, size_t size, unsigned flags,
                         uint32_t id, uint64_t ticks)
{
    return (sw_record){.kind = (uint8_t)kind,
                       .units = (uint8_t)(size / SW_RECORD_UNIT),
                       .flags = (uint16_t)flags,
                       .id = id,
                       .ticks = ticks};
}

/* --- Records -------------------------------------------------------------------------------- */

static PyObject *put_sync(PyObject *Py_UNUSED(module), PyObject *const *args,
                          Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_sync", args, count, 2)) {
        sw_record_sync record = {.end = sw_now()};
        const uint32_t id = argument_name(&from);
        record.head = head_of(SW_RECORD_SYNC, sizeof record, SW_RECORD_INTERVAL, id,
                              argument_u64(&from));
        record.file = argument_name(&from);
        record.line = argument_u32(&from);
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

static PyObject *put_xfer(PyObject *Py_UNUSED(module), PyObject *const *args,
                          Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_xfer", args, count, 5)) {
        sw_record_xfer record = {.end = sw_now()};
        const uint32_t id = argument_name(&from);
        record.head = head_of(SW_RECORD_XFER, sizeof record, SW_RECORD_INTERVAL, id,
                              argument_u64(&from));
        record.bytes = argument_u64(&from);
        record.direction = argument_u32(&from);
        record.pinned = argument_u32(&from);
        record.file = argument_name(&from);
        record.line = argument_u32(&from);
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

static PyObject *put_compile(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_compile", args, count, 6)) {
        sw_record_compile record = {0};
        const uint32_t id = argument_name(&from);
        record.reason = argument_name(&from);
        record.stage = argument_u32(&from);
        record.head = head_of(SW_RECORD_COMPILE, sizeof record, SW_RECORD_INTERVAL, id,
                              argument_u64(&from));
        record.end = argument_u64(&from);
        record.count = argument_u64(&from);
        record.file = argument_name(&from);
        record.line = argument_u32(&from);
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

static PyObject *put_batch(PyObject *Py_UNUSED(module), PyObject *const *args,
                           Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_batch", args, count, 3)) {
        sw_record_batch record = {0};
        const uint32_t id = argument_name(&from);
        record.head = head_of(SW_RECORD_BATCH, sizeof record, SW_RECORD_INTERVAL, id,
                              argument_u64(&from));
        record.end = argument_u64(&from);
        record.fetch_begin = argument_u64(&from);
        record.fetch_end = argument_u64(&from);
        record.put = argument_u64(&from);
        record.receive = argument_u64(&from);
        record.pin = argument_u64(&from);
        record.cpu_ns = argument_u64(&from);
        record.bytes = argument_u64(&from);
        record.batch = argument_u64(&from);
        record.epoch = argument_u32(&from);
        record.index = argument_u32(&from);
        PyObject *worker = argument_next(&from);
        record.worker = UINT32_MAX;
        if (worker) {
            from.next--;
            record.worker = argument_u32(&from);
        }
        record.queue_depth = argument_u32(&from);
        const int64_t step = sw_step_number();
        record.step = worker || step < 0 ? UINT64_MAX : (uint64_t)step;
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

static PyObject *put_collective(PyObject *Py_UNUSED(module), PyObject *const *args,
                                Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_collective", args, count, 4)) {
        sw_record_collective record = {0};
        const uint32_t id = argument_name(&from);
        record.head = head_of(SW_RECORD_COLLECTIVE, sizeof record, SW_RECORD_INTERVAL, id,
                              argument_u64(&from));
        record.start = argument_u64(&from);
        record.end = argument_u64(&from);
        record.bytes = argument_u64(&from);
        record.sequence = argument_u64(&from);
        record.group = argument_name(&from);
        record.ranks = argument_u32(&from);
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

static PyObject *put_gc(PyObject *Py_UNUSED(module), PyObject *const *args,
                        Py_ssize_t count)
{
    arguments from;
    if (arguments_begin(&from, "put_gc", args, count, 3)) {
        sw_record_gc record = {.end = sw_now()};
        record.head = head_of(SW_RECORD_GC, sizeof record, SW_RECORD_INTERVAL, 0,
                              argument_u64(&from));
        record.generation = argument_u32(&from);
        record.collected = argument_u32(&from);
        if (!from.wrong) {
            sw_record_put(&record.head);
        }
    }
    return arguments_end(&from);
}

/* --- Rows ----------------------------------------------------------------------------------- */

static int row_keys(PyObject *keys, sw_row *row)
{
    PyObject *fast = PySequence_Fast(keys, "keys must be a sequence");
    if (!fast) {
        return -1;
    }
    bool wrong = PySequence_Fast_GET_SIZE(fast) > 4;
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "a row has four keys");
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast) && !wrong; i++) {
        PyObject *key = PySequence_Fast_GET_ITEM(fast, i);
        if (PyUnicode_Check(key)) {
            row->key[i] = name_of(key, &wrong);
        } else if (key != Py_None) {
            const uint64_t number = PyLong_AsUnsignedLongLongMask(key);
            wrong = number == UINT64_MAX && PyErr_Occurred();
            row->key[i] = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
        }
    }
    Py_DECREF(fast);
    return wrong ? -1 : 0;
}

static int row_values(PyObject *values, sw_row *row)
{
    PyObject *fast = PySequence_Fast(values, "values must be a sequence");
    if (!fast) {
        return -1;
    }
    bool wrong = PySequence_Fast_GET_SIZE(fast) > 5;
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "a row has five values");
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast) && !wrong; i++) {
        PyObject *value = PySequence_Fast_GET_ITEM(fast, i);
        if (PyFloat_Check(value)) {
            const double number = PyFloat_AS_DOUBLE(value);
            memcpy(&row->value[i], &number, sizeof number);
        } else if (PyUnicode_Check(value)) {
            row->value[i] = name_of(value, &wrong);
        } else if (value != Py_None) {
            row->value[i] = PyLong_AsUnsignedLongLongMask(value);
            wrong = row->value[i] == UINT64_MAX && PyErr_Occurred();
        }
    }
    Py_DECREF(fast);
    return wrong ? -1 : 0;
}

static PyObject *put_row(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long handle;
    unsigned table, flags;
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "KIIOO:put_row", &handle, &table, &flags, &keys,
                          &values)) {
        return NULL;
    }
    if (table >= SW_TABLES) {
        PyErr_Format(PyExc_ValueError, "there is no table %u", table);
        return NULL;
    }
    if (!SW_GATE(gate)) {
        return Py_BuildValue("(KI)", 0ULL, UINT32_MAX);
    }
    sw_row row = {.table = (uint16_t)table, .flags = (uint16_t)flags};
    if (row_keys(keys, &row) != 0 || row_values(values, &row) != 0) {
        return NULL;
    }
    const uint64_t made = sw_row_put(handle, &row);
    return made ? Py_BuildValue("(KI)", (unsigned long long)made, (unsigned)row.index)
                : Py_BuildValue("(KI)", 0ULL, UINT32_MAX);
}

/* --- Time, facts, places -------------------------------------------------------------------- */

static PyObject *now(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(sw_now());
}

/* Measured from the import of this module to now, so that it gets better with time. */
static PyObject *ticks_per_second(PyObject *Py_UNUSED(module),
                                  PyObject *Py_UNUSED(ignored))
{
    sw_clock_snapshot last;
    do {
        sw_clock_snap(&last);
    } while (last.mono_ns - first_snapshot.mono_ns < 2000000);
    return PyFloat_FromDouble((double)(last.ticks - first_snapshot.ticks) * 1e9 /
                              (double)(last.mono_ns - first_snapshot.mono_ns));
}

static PyObject *charge(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    unsigned long long since;
    if (!PyArg_ParseTuple(args, "sK:charge", &name, &since)) {
        return NULL;
    }
    for (int phase = 0; phase < SW_PHASE_COUNT; phase++) {
        if (strcmp(sw_phase_name((unsigned)phase), name) == 0) {
            if (SW_GATE(gate)) {
                sw_phase_charge(phase, since);
            }
            Py_RETURN_NONE;
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no phase '%s'", name);
    return NULL;
}

static PyObject *fact(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *key, *value;
    if (!PyArg_ParseTuple(args, "UU:fact", &key, &value)) {
        return NULL;
    }
    core_text key_text, value_text;
    if (core_text_get(key, "key", &key_text) != 0) {
        return NULL;
    }
    if (core_text_get(value, "value", &value_text) != 0) {
        core_text_release(&key_text);
        return NULL;
    }
    sw_fact(key_text.data, value_text.data);
    core_text_release(&key_text);
    core_text_release(&value_text);
    Py_RETURN_NONE;
}

static PyObject *option(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) {
        return NULL;
    }
    char value[4200]; /* the longest is a list of functions */
    sw_option_value(text, value, sizeof value);
    return PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
}

static PyObject *step_number(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(sw_step_number());
}

static PyObject *user_site(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_user_site site;
    if (!core_user_site_find(&site)) {
        Py_RETURN_NONE;
    }
    PyObject *result = Py_BuildValue("(OiO)", site.code->co_filename, site.line,
#if PY_VERSION_HEX >= 0x030b0000
                                     site.code->co_qualname
#else
                                     site.code->co_name
#endif
    );
    Py_DECREF(site.code);
    return result;
}

static PyMethodDef records_methods[] = {
    {"now", now, METH_NOARGS, PyDoc_STR("The clock, in ticks.")},
    {"ticks_per_second", ticks_per_second, METH_NOARGS, PyDoc_STR("Rate of the clock.")},
    {"put_sync", FAST(put_sync), METH_FASTCALL,
     PyDoc_STR("put_sync(name, begin, file=None, line=None, /)\n--\n\n"
               "The host waited for a device since begin.")},
    {"put_xfer", FAST(put_xfer), METH_FASTCALL,
     PyDoc_STR(
         "put_xfer(name, begin, bytes, direction, pinned, file=None, line=None, /)")},
    {"put_compile", FAST(put_compile), METH_FASTCALL,
     PyDoc_STR("put_compile(name, reason, stage, begin, end, count, file=None, "
               "line=None, /)")},
    {"put_batch", FAST(put_batch), METH_FASTCALL,
     PyDoc_STR("put_batch(loader, begin, end, fetch_begin, fetch_end, put, receive, pin, "
               "cpu_ns, bytes, batch, epoch, index, worker, queue_depth, /)")},
    {"put_collective", FAST(put_collective), METH_FASTCALL,
     PyDoc_STR("put_collective(name, begin, start, end, bytes, sequence, group, ranks, "
               "/)")},
    {"put_gc", FAST(put_gc), METH_FASTCALL,
     PyDoc_STR("put_gc(begin, generation, collected, /)")},
    {"put_row", put_row, METH_VARARGS,
     PyDoc_STR("put_row(handle, table, flags, keys, values, /)\n--\n\n"
               "Make a row (handle 0) or change it; return its handle and index.")},
    {"charge", charge, METH_VARARGS,
     PyDoc_STR("charge(phase, since, /)\n--\n\n"
               "What ran since then under the running phase counts as this one.")},
    {"fact", fact, METH_VARARGS, PyDoc_STR("Say something about this process.")},
    {"option", option, METH_O, PyDoc_STR("The value in force of an option, as text.")},
    {"step_number", step_number, METH_NOARGS,
     PyDoc_STR("Number of the open step, or of the next; -1 when nothing is recorded.")},
    {"user_site", user_site, METH_NOARGS,
     PyDoc_STR("(file, line, function) of the user's own code that led here, or None.")},
    {NULL, NULL, 0, NULL},
};

int core_records_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    if (!first_snapshot.mono_ns) {
        sw_clock_snap(&first_snapshot);
    }
    return PyModule_AddFunctions(module, records_methods);
}
