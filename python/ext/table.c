/* stepwatch.Table: rows of a run, read when they are asked for. */
#include "run.h"

#include "arrow.h"
#include "columns.h"
#include "unseen.h"

#include <stdlib.h>

/* Rows that are read at once: enough that locks and signals cost nothing, few enough that memory is small. */
#define BATCH 64
#define SKIP ((uint64_t)1 << 18)
#define NAMES 128

typedef struct table_object {
    PyObject_HEAD PyObject *run;
    enum core_table_number number;
    PyObject *columns;   /* tuple of str */
    core_reader *reader; /* where the last t[i] ended; NULL: none, or in use */
} table_object;

/* A name that was made a string not long ago. */
struct known_name {
    const char *data;
    size_t length;
    PyObject *text;
};

/* Rows become dicts here. `busy` makes sure that one thread at a time is inside. */
typedef struct rows_object {
    PyObject_HEAD PyObject *run;
    PyObject *columns;
    PyObject *blank;     /* a row with all keys: copying it is cheaper than making one */
    core_reader *reader; /* NULL: at the end */
    core_cell *cells;
    size_t rows, next; /* of the batch */
    int busy;
    struct known_name names[NAMES];
} rows_object;

static const core_table_kind *kind_of(const table_object *self)
{
    return core_tables[self->number];
}

/* --- Values ----------------------------------------------------------------------- */

static PyObject *name_make(rows_object *self, const core_bytes *text)
{
    struct known_name *known =
        &self->names[((uintptr_t)text->data >> 4 ^ text->length) % NAMES];
    if (!known->text || known->data != text->data || known->length != text->length) {
        PyObject *made = core_decode(text->data, text->length);
        if (!made) {
            return NULL;
        }
        PyObject *old = known->text;
        *known = (struct known_name){text->data, text->length, made};
        Py_XDECREF(old);
    }
    Py_INCREF(known->text);
    return known->text;
}

static PyObject *texts_make(const core_cell *cell)
{
    PyObject *list = PyList_New((Py_ssize_t)cell->as.texts.count);
    for (size_t i = 0; list && i < cell->as.texts.count; i++) {
        const core_bytes *item = &cell->as.texts.items[i];
        PyObject *text = core_decode(item->data, item->length);
        if (!text) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *value_make(rows_object *self, enum core_column_type type,
                            const core_cell *cell)
{
    switch (type) {
    case CORE_INTEGER:
        return PyLong_FromLongLong(cell->as.integer);
    case CORE_REAL:
        return PyFloat_FromDouble(cell->as.real);
    case CORE_TRUTH:
        return PyBool_FromLong(cell->as.truth);
    case CORE_NAME:
        return name_make(self, &cell->as.text);
    case CORE_TEXT:
        return core_decode(cell->as.text.data, cell->as.text.length);
    case CORE_TEXTS:
        return texts_make(cell);
    }
    Py_RETURN_NONE;
}

/* --- The iterator ----------------------------------------------------------------- */

static core_reader *reader_open(core_source *source, enum core_table_number number)
{
    core_reader *reader;
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS error = core_reader_open(&reader, source, number, &info);
    Py_END_ALLOW_THREADS if (error)
    {
        core_raise(error, &info);
    }
    return reader;
}

/* Takes the reader over, also when it fails. */
static PyObject *rows_new(table_object *table, core_reader *reader)
{
    core_state *state = PyType_GetModuleState(Py_TYPE(table));
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_TABLE_ITERATOR_TYPE];
    rows_object *self = (rows_object *)type->tp_alloc(type, 0);
    core_cell *cells = calloc(BATCH * kind_of(table)->column_count, sizeof *cells);
    PyObject *blank = PyDict_New();
    for (Py_ssize_t i = 0; blank && i < PyTuple_GET_SIZE(table->columns); i++) {
        if (PyDict_SetItem(blank, PyTuple_GET_ITEM(table->columns, i), Py_None) != 0) {
            Py_CLEAR(blank);
        }
    }
    if (!self || !cells || !blank) {
        Py_XDECREF(blank);
        core_reader_free(reader);
        free(cells);
        Py_XDECREF(self);
        return PyErr_NoMemory();
    }
    Py_INCREF(table->run);
    self->run = table->run;
    Py_INCREF(table->columns);
    self->columns = table->columns;
    self->blank = blank;
    self->reader = reader;
    self->cells = cells;
    return (PyObject *)self;
}

static void rows_dealloc(rows_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    core_reader_free(self->reader);
    free(self->cells);
    for (size_t i = 0; i < NAMES; i++) {
        Py_CLEAR(self->names[i].text);
    }
    Py_CLEAR(self->blank);
    Py_CLEAR(self->columns);
    Py_CLEAR(self->run);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Reads the next batch. 1, 0 at the end, -1 with an exception. */
static int rows_fill(rows_object *self, size_t most)
{
    sw_error_info info = {0};
    size_t rows = 0;
    int error;
    if (!self->reader) {
        return 0;
    }
    if (PyErr_CheckSignals() != 0) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS error =
        core_reader_fill(self->reader, self->cells, most, &rows, &info);
    Py_END_ALLOW_THREADS self->next = 0;
    self->rows = rows;
    if (error) {
        core_raise(error, &info);
        return -1;
    }
    if (rows == 0) {
        core_reader_free(self->reader);
        self->reader = NULL;
    }
    return rows != 0;
}

static PyObject *row_make(rows_object *self)
{
    const core_table_kind *kind = self->reader->kind;
    const core_cell *cells = self->cells + self->next * kind->column_count;
    PyObject *row = PyDict_Copy(self->blank);
    for (size_t i = 0; row && i < kind->column_count; i++) {
        if (!cells[i].known) {
            continue;
        }
        PyObject *value = value_make(self, kind->columns[i].type, &cells[i]);
        PyObject *key = PyTuple_GET_ITEM(self->columns, (Py_ssize_t)i);
        if (!value || PyDict_SetItem(row, key, value) != 0) {
            Py_CLEAR(row);
        }
        Py_XDECREF(value);
    }
    return row;
}

static PyObject *rows_next(rows_object *self)
{
    if (core_run_check(self->run) != 0) {
        return NULL;
    }
    if (__atomic_exchange_n(&self->busy, 1, __ATOMIC_ACQUIRE)) {
        PyErr_SetString(PyExc_ValueError,
                        "another thread is using this iterator of a table");
        return NULL;
    }
    PyObject *row = NULL;
    if (self->next < self->rows || rows_fill(self, BATCH) > 0) {
        row = row_make(self);
        self->next += row != NULL;
    }
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    return row;
}

static PyType_Slot rows_slots[] = {
    {Py_tp_doc, (void *)"Rows of a Table, one after the other."},
    {Py_tp_new, core_no_new},
    {Py_tp_dealloc, rows_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, rows_next},
    {0, NULL},
};

static PyType_Spec rows_spec = {
    .name = "stepwatch._core.TableIterator",
    .basicsize = sizeof(rows_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = rows_slots,
};

static PyObject *table_iter(table_object *self)
{
    core_source *source = core_run_source(self->run);
    if (!source) {
        return NULL;
    }
    core_reader *reader = reader_open(source, self->number);
    core_source_release(source);
    return reader ? rows_new(self, reader) : NULL;
}

/* --- Length and places ------------------------------------------------------------ */

/* Passes over rows in pieces, so that an interrupt is heard. Rows passed, or UINT64_MAX with an exception. */
static uint64_t reader_skip(core_reader *reader, uint64_t most)
{
    uint64_t passed = 0;
    while (passed < most) {
        const uint64_t piece = most - passed < SKIP ? most - passed : SKIP;
        sw_error_info info = {0};
        uint64_t rows;
        int error;
        Py_BEGIN_ALLOW_THREADS error = core_reader_skip(reader, piece, &rows, &info);
        Py_END_ALLOW_THREADS if (error || PyErr_CheckSignals() != 0)
        {
            if (error) {
                core_raise(error, &info);
            }
            return UINT64_MAX;
        }
        passed += rows;
        if (rows < piece) {
            break;
        }
    }
    return passed;
}

static Py_ssize_t table_length(table_object *self)
{
    core_source *source = core_run_source(self->run);
    if (!source) {
        return -1;
    }
    uint64_t *kept = &source->rows[self->number];
    uint64_t rows = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (rows == UINT64_MAX) {
        core_reader *reader = reader_open(source, self->number);
        rows = reader ? reader_skip(reader, INT64_MAX) : UINT64_MAX;
        core_reader_free(reader);
        __atomic_store_n(kept, rows, __ATOMIC_RELAXED);
    }
    core_source_release(source);
    return rows == UINT64_MAX ? -1 : (Py_ssize_t)rows;
}

/* An iterator whose next row is `start`: where the last one was left, if that is not behind. */
static PyObject *rows_from(table_object *self, uint64_t start)
{
    core_source *source = core_run_source(self->run);
    if (!source) {
        return NULL;
    }
    core_reader *reader = __atomic_exchange_n(&self->reader, NULL, __ATOMIC_ACQ_REL);
    if (!reader || reader->source != source || reader->passed > start) {
        core_reader_free(reader);
        reader = reader_open(source, self->number);
    }
    core_source_release(source);
    if (reader && reader_skip(reader, start - reader->passed) == UINT64_MAX) {
        core_reader_free(reader);
        reader = NULL;
    }
    return reader ? rows_new(self, reader) : NULL;
}

/* Leaves the reader for the next t[i]. */
static void rows_leave(table_object *self, rows_object *rows)
{
    core_reader *reader = rows->reader;
    rows->reader = NULL;
    rows->rows = rows->next = 0;
    if (reader) {
        core_reader_free(__atomic_exchange_n(&self->reader, reader, __ATOMIC_ACQ_REL));
    }
}

static PyObject *table_item(table_object *self, Py_ssize_t index)
{
    const Py_ssize_t length = table_length(self);
    if (length < 0) {
        return NULL;
    }
    if (index < 0 || index >= length) {
        PyErr_Format(PyExc_IndexError, "%s has %zd rows", kind_of(self)->name, length);
        return NULL;
    }
    rows_object *rows = (rows_object *)rows_from(self, (uint64_t)index);
    if (!rows) {
        return NULL;
    }
    PyObject *row = NULL;
    const int more = rows_fill(rows, 1);
    if (more > 0) {
        row = row_make(rows);
    } else if (more == 0) {
        PyErr_Format(PyExc_IndexError, "%s has no row %zd any more: its file changed",
                     kind_of(self)->name, index);
    }
    rows_leave(self, rows);
    Py_DECREF(rows);
    return row;
}

/* `count` rows from `start` on, every `step`th. */
static PyObject *table_range(table_object *self, Py_ssize_t start, Py_ssize_t step,
                             Py_ssize_t count)
{
    PyObject *list = PyList_New(0);
    PyObject *rows = list && count ? rows_from(self, (uint64_t)start) : NULL;
    if (list && count && !rows) {
        Py_CLEAR(list);
    }
    for (Py_ssize_t place = 0, next = 0; list && count && place <= (count - 1) * step;
         place++) {
        PyObject *row = rows_next((rows_object *)rows);
        if (!row) {
            if (PyErr_Occurred()) {
                Py_CLEAR(list);
            }
            break;
        }
        if (place == next) {
            next += step;
            if (PyList_Append(list, row) != 0) {
                Py_CLEAR(list);
            }
        }
        Py_DECREF(row);
    }
    Py_XDECREF(rows);
    return list;
}

static PyObject *table_subscript(table_object *self, PyObject *key)
{
    if (PyIndex_Check(key)) {
        Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (index < 0) {
            const Py_ssize_t length = table_length(self);
            if (length < 0) {
                return NULL;
            }
            index += length;
        }
        return table_item(self, index);
    }
    if (!PySlice_Check(key)) {
        PyErr_Format(PyExc_TypeError, "rows are numbered: int or slice, not %.100s",
                     Py_TYPE(key)->tp_name);
        return NULL;
    }
    Py_ssize_t start, stop, step;
    const Py_ssize_t length = table_length(self);
    if (length < 0 || PySlice_Unpack(key, &start, &stop, &step) != 0) {
        return NULL;
    }
    const Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
    if (step > 0 || count == 0) {
        return table_range(self, start, step, count);
    }
    PyObject *list = table_range(self, start + (count - 1) * step, -step, count);
    if (list && PyList_Reverse(list) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* --- Methods ---------------------------------------------------------------------- */

PyDoc_STRVAR(to_list_doc,
             "to_list($self, /)\n--\n\nAll rows as a list of dicts.\n\n"
             ">>> stepwatch.open(path).steps.to_list()[0]['duration_ns']\n2104310");

static PyObject *table_to_list(table_object *self, PyObject *Py_UNUSED(ignored))
{
    return PySequence_List((PyObject *)self);
}

PyDoc_STRVAR(to_pandas_doc,
             "to_pandas($self, /)\n--\n\nThe table as a pandas.DataFrame. Integers that "
             "a row may not "
             "know have\nthe dtype Int64, so that none of them is rounded.\n\n"
             ">>> stepwatch.open(path).steps.to_pandas()['duration_ns'].sum()\n42086200");

static PyObject *call_helper(const char *name, PyObject *argument)
{
    PyObject *module = core_import("stepwatch._report");
    PyObject *result = module ? PyObject_CallMethod(module, name, "O", argument) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *table_to_pandas(table_object *self, PyObject *Py_UNUSED(ignored))
{
    return call_helper("table_to_pandas", (PyObject *)self);
}

static PyObject *table_repr_html(table_object *self, PyObject *Py_UNUSED(ignored))
{
    return call_helper("table_to_html", (PyObject *)self);
}

static PyObject *table_repr(table_object *self)
{
    return call_helper("table_to_text", (PyObject *)self);
}

/* Strings of a text column. */
static PyObject *strings_of(const core_values *column, size_t rows)
{
    const int32_t *offset = (const int32_t *)(const void *)column->offsets.data;
    PyObject *list = PyList_New((Py_ssize_t)rows);
    for (size_t i = 0; list && i < rows; i++) {
        const bool known = !column->unknown || column->known.data[i / 8] >> i % 8 & 1;
        PyObject *text = Py_None;
        if (known) {
            text = core_decode((const char *)column->values.data + offset[i],
                               (size_t)(offset[i + 1] - offset[i]));
        } else {
            Py_INCREF(text);
        }
        if (!text) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *bytes_of(const core_buffer *buffer)
{
    return PyBytes_FromStringAndSize((const char *)buffer->data,
                                     (Py_ssize_t)buffer->used);
}

static PyObject *column_make(const core_columns *columns, size_t index)
{
    const core_column *column = &columns->kind->columns[index];
    const core_values *values = &columns->column[index];
    PyObject *data, *known = Py_None;
    const char *type;
    switch (column->type) {
    case CORE_INTEGER:
    case CORE_REAL:
    case CORE_TRUTH:
        type = column->type == CORE_INTEGER ? "int64"
               : column->type == CORE_REAL  ? "float64"
                                            : "bool";
        data = bytes_of(&values->values);
        break;
    case CORE_TEXTS:
        /* There are few such rows; whoever asks reads them one by one. */
        type = "list";
        Py_INCREF(Py_None);
        data = Py_None;
        break;
    default:
        type = "str";
        data = strings_of(values, columns->rows);
        break;
    }
    if (data && values->unknown) {
        known = bytes_of(&values->known);
    } else {
        Py_INCREF(known);
    }
    if (!data || !known) {
        Py_XDECREF(data);
        Py_XDECREF(known);
        return NULL;
    }
    return Py_BuildValue("(sOsNN)", column->name, column->nullable ? Py_True : Py_False,
                         type, data, known);
}

PyDoc_STRVAR(
    batches_doc,
    "_batches($self, /)\n--\n\nThe table by columns, a batch of rows at a time: lists of "
    "(name, nullable, type, data, known).");

/* One batch as (rows, columns); no rows at the end. */
static PyObject *batch_make(core_reader *reader)
{
    core_columns columns;
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS error = core_columns_init(&columns, reader->kind);
    if (!error) {
        error = core_columns_read(&columns, reader, 65536, &info);
    }
    Py_END_ALLOW_THREADS if (error)
    {
        core_columns_free(&columns);
        return core_raise(error, &info);
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < reader->kind->column_count; i++) {
        PyObject *column = column_make(&columns, i);
        if (!column || PyList_Append(list, column) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(column);
    }
    PyObject *batch = list ? Py_BuildValue("(nN)", (Py_ssize_t)columns.rows, list) : NULL;
    core_columns_free(&columns);
    return batch;
}

static PyObject *table_batches(table_object *self, PyObject *Py_UNUSED(ignored))
{
    core_source *source = core_run_source(self->run);
    core_reader *reader = source ? reader_open(source, self->number) : NULL;
    core_source_release(source);
    PyObject *list = reader ? PyList_New(0) : NULL;
    for (bool more = true; list && more;) {
        /* The first one is kept also when it is empty: it tells the types. */
        PyObject *batch = PyErr_CheckSignals() == 0 ? batch_make(reader) : NULL;
        more = batch && PyLong_AsLong(PyTuple_GET_ITEM(batch, 0)) > 0;
        if (!batch ||
            ((more || PyList_GET_SIZE(list) == 0) && PyList_Append(list, batch) != 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(batch);
    }
    core_reader_free(reader);
    return list;
}

/* --- Arrow ------------------------------------------------------------------------ */

static void schema_discard(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema && schema->release) {
        schema->release(schema);
    }
    free(schema);
}

static void stream_discard(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream && stream->release) {
        stream->release(stream);
    }
    free(stream);
}

PyDoc_STRVAR(
    arrow_schema_doc,
    "__arrow_c_schema__($self, /)\n--\n\nThe columns, for libraries that speak Arrow.");

static PyObject *table_arrow_schema(table_object *self, PyObject *Py_UNUSED(ignored))
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    if (!schema || core_arrow_schema(schema, kind_of(self)) != 0) {
        free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, "arrow_schema", schema_discard);
    if (!capsule) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

PyDoc_STRVAR(
    arrow_stream_doc,
    "__arrow_c_stream__($self, /, requested_schema=None)\n--\n\n"
    "The rows, for libraries that speak Arrow: pandas, polars, DuckDB, pyarrow.\n\n"
    ">>> import polars\n"
    ">>> polars.DataFrame(stepwatch.open(path).spans).group_by('name').len()");

static PyObject *table_arrow_stream(table_object *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"requested_schema", NULL};
    PyObject *requested = Py_None; /* a wish, which a producer need not fulfil */
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_stream__", keywords,
                                     &requested)) {
        return NULL;
    }
    core_source *source = core_run_source(self->run);
    if (!source) {
        return NULL;
    }
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    sw_error_info info = {0};
    int error = SW_ENOMEM;
    if (stream) {
        Py_BEGIN_ALLOW_THREADS error =
            core_arrow_stream(stream, source, self->number, &info);
        Py_END_ALLOW_THREADS
    }
    core_source_release(source);
    if (error) {
        free(stream);
        return core_raise(error, &info);
    }
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", stream_discard);
    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

/* --- The type --------------------------------------------------------------------- */

PyObject *core_table_new(core_state *state, PyObject *run, enum core_table_number number)
{
    const core_table_kind *kind = core_tables[number];
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_TABLE_TYPE];
    table_object *self = (table_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->number = number;
    Py_INCREF(run);
    self->run = run;
    self->columns = PyTuple_New((Py_ssize_t)kind->column_count);
    for (size_t i = 0; self->columns && i < kind->column_count; i++) {
        PyObject *name = PyUnicode_InternFromString(kind->columns[i].name);
        if (!name) {
            Py_CLEAR(self->columns);
            break;
        }
        PyTuple_SET_ITEM(self->columns, (Py_ssize_t)i, name);
    }
    if (!self->columns) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void table_dealloc(table_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    core_reader_free(self->reader);
    Py_CLEAR(self->columns);
    Py_CLEAR(self->run);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *table_get_columns(table_object *self, void *Py_UNUSED(closure))
{
    return PySequence_List(self->columns);
}

static PyObject *table_get_name(table_object *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(kind_of(self)->name);
}

static PyMethodDef table_methods[] = {
    {"to_list", (PyCFunction)table_to_list, METH_NOARGS, to_list_doc},
    {"to_pandas", (PyCFunction)table_to_pandas, METH_NOARGS, to_pandas_doc},
    {"_repr_html_", (PyCFunction)table_repr_html, METH_NOARGS,
     PyDoc_STR("The first rows, for notebooks.")},
    {"_batches", (PyCFunction)table_batches, METH_NOARGS, batches_doc},
    {"__arrow_c_schema__", (PyCFunction)table_arrow_schema, METH_NOARGS,
     arrow_schema_doc},
    {"__arrow_c_stream__", (PyCFunction)(void (*)(void))table_arrow_stream,
     METH_VARARGS | METH_KEYWORDS, arrow_stream_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef table_getset[] = {
    {"columns", (getter)table_get_columns, NULL,
     PyDoc_STR("Names of the columns, which are the keys of each row."), NULL},
    {"name", (getter)table_get_name, NULL, PyDoc_STR("Name of the table."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    table_doc,
    "Rows of a run, read from its files when they are asked for.\n\n"
    "A sequence of plain dicts; also an Arrow stream. What is not known is None.\n\n"
    ">>> [step['duration_ns'] for step in stepwatch.open(path).steps][:2]\n"
    "[2104310, 2101877]");

static PyType_Slot table_slots[] = {
    {Py_tp_doc, (void *)table_doc},     {Py_tp_new, core_no_new},
    {Py_tp_dealloc, table_dealloc},     {Py_tp_repr, table_repr},
    {Py_tp_iter, table_iter},           {Py_tp_methods, table_methods},
    {Py_tp_getset, table_getset},       {Py_sq_length, table_length},
    {Py_sq_item, table_item},           {Py_mp_length, table_length},
    {Py_mp_subscript, table_subscript}, {0, NULL},
};

static PyType_Spec table_spec = {
    .name = "stepwatch.Table",
    .basicsize = sizeof(table_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_slots,
};

int core_table_add(PyObject *module)
{
    return core_type_add(module, CORE_TABLE_ITERATOR_TYPE, &rows_spec) != 0
               ? -1
               : core_type_add(module, CORE_TABLE_TYPE, &table_spec);
}
