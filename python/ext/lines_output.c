/* What a Lines object shows: text, JSON, rows. */
#include "lines.h"
#include "unseen.h"
#include <stepwatch/export.h>
#include <string.h>
#include <unistd.h>

/* A look right after the start waits until the clocks are far enough apart to tell their rate. */
static double ns_per_tick(void)
{
    static int waited;
    sw_clock_snapshot from, now;
    if (!waited && sw_clock_get_kind() != SW_CLOCK_MONOTONIC) {
        sw_clock_snap(&from);
        do {
            sw_clock_snap(&now);
        } while (now.mono_ns - from.mono_ns < 2000000);
        waited = 1;
    }
    return core_ticks_ns();
}

/* --- the profile ------------------------------------------------------------------ */

/* The text of the file as Python finds it: it knows of notebooks' cells and of packed modules. */
static int add_source(sw_lines *lines, PyObject *file)
{
    PyObject *linecache = core_import("linecache");
    PyObject *list =
        linecache ? PyObject_CallMethod(linecache, "getlines", "O", file) : NULL;
    PyObject *empty = list ? PyUnicode_FromString("") : NULL;
    PyObject *text = empty ? PyUnicode_Join(empty, list) : NULL;
    core_text name = {0}, source = {0};
    int result = -1;
    if (text && core_text_get(file, "file", &name) == 0 &&
        core_text_get(text, "source", &source) == 0) {
        result = 0;
        if (source.length > 0 &&
            sw_lines_set_source(lines, name.data, (size_t)name.length, source.data,
                                (size_t)source.length) != 0) {
            PyErr_NoMemory();
            result = -1;
        }
    }
    core_text_release(&name);
    core_text_release(&source);
    Py_XDECREF(text);
    Py_XDECREF(empty);
    Py_XDECREF(list);
    Py_XDECREF(linecache);
    return result;
}

/* Whether a file's text has to be asked for, or can be read as it is. Importing what Python needs for it is avoided where
 * that can be: at the end of a program that Ctrl-C ended, it makes Python forget to end by the signal. */
static int needs_python(PyObject *file)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    if (PyDict_GetItemString(modules, "linecache") &&
        PyDict_GetItemString(modules, "tokenize")) {
        return 1;
    }
    PyObject *path = NULL;
    const int readable =
        PyUnicode_FSConverter(file, &path) && access(PyBytes_AS_STRING(path), R_OK) == 0;
    Py_XDECREF(path);
    PyErr_Clear();
    return !readable;
}

static int add_entry(sw_lines *lines, const lines_entry *entry, double scale)
{
    const line_code *table = entry->table;
    const PyCodeObject *code = (PyCodeObject *)table->code;
    core_text file = {0}, name = {0};
    size_t index = 0;
    int result = -1;
    if (core_text_get(code->co_filename, "file", &file) == 0 &&
        core_text_get(table->name, "name", &name) == 0) {
        result = sw_lines_add_function(
            lines, file.data, (size_t)file.length, name.data, (size_t)name.length,
            code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 1, &index);
        for (uint32_t i = 0; i < table->count && result == 0; i++) {
            const line_cell *cell = &entry->kept[i];
            if (cell->hits || cell->ticks) {
                result = sw_lines_add_line(lines, index, table->first + i, cell->hits,
                                           (uint64_t)((double)cell->ticks * scale + 0.5));
            }
        }
        if (result == 0) {
            result = sw_lines_add_line(lines, index, table->last, 0, 0);
        }
        if (result != 0) {
            PyErr_NoMemory();
            result = -1;
        }
    }
    core_text_release(&file);
    core_text_release(&name);
    return result;
}

/* Functions that never ran are left out unless none ran. */
static int entry_ran(const lines_entry *entry)
{
    for (uint32_t i = 0; i < entry->table->count; i++) {
        if (entry->kept[i].hits || entry->kept[i].ticks) {
            return 1;
        }
    }
    return 0;
}

static sw_lines *profile_of(lines_object *self, int with_source)
{
    core_lines_collect(self);
    const double scale = ns_per_tick();
    sw_lines *lines = sw_lines_create();
    if (!lines) {
        PyErr_NoMemory();
        return NULL;
    }
    /* Looking for source runs Python code, which may change the set; so it comes last. */
    PyObject *files = PyList_New(0);
    int result = files ? 0 : -1;
    for (size_t i = 0; i < self->count && result == 0; i++) {
        const lines_entry *entry = &self->entries[i];
        if (entry_ran(entry)) {
            result = add_entry(lines, entry, scale);
            if (result == 0) {
                result = PyList_Append(files,
                                       ((PyCodeObject *)entry->table->code)->co_filename);
            }
        }
    }
    for (Py_ssize_t i = 0; with_source && result == 0 && i < PyList_GET_SIZE(files);
         i++) {
        PyObject *file = PyList_GET_ITEM(files, i);
        result = needs_python(file) ? add_source(lines, file) : 0;
    }
    Py_XDECREF(files);
    if (result != 0) {
        sw_lines_free(lines);
        return NULL;
    }
    sw_lines_finish(lines);
    return lines;
}

/* What the writer collected, as str. Closes the writer. */
static PyObject *finish(sw_writer *writer)
{
    size_t length = 0;
    const char *text = writer ? sw_writer_text(writer, &length) : NULL;
    PyObject *result =
        text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace") : NULL;
    if (sw_writer_close(writer, NULL) != 0 || (!text && !PyErr_Occurred())) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    return result;
}

static PyObject *make_text(lines_object *self, size_t columns, int unicode)
{
    sw_lines *lines = profile_of(self, 1);
    if (!lines) {
        return NULL;
    }
    sw_writer *writer = sw_writer_to_memory();
    if (writer) {
        const sw_lines_text_options options = {.columns = columns,
                                               .unicode = unicode != 0};
        sw_export_lines_text(writer, lines, &options);
        if (sw_lines_count(lines) == 0) {
            sw_write_format(writer, "No line of the %zu chosen function%s ran.\n",
                            self->count, self->count == 1 ? "" : "s");
        }
    }
    sw_lines_free(lines);
    return finish(writer);
}

/* --- methods ---------------------------------------------------------------------- */

const char core_lines_rows_doc[] =
    "rows($self, /)\n--\n\n"
    "The lines that ran, as dicts: file, function, line, hits, time_ns.\n\n"
    "    for row in stepwatch.lines.rows():\n"
    "        print(row[\"line\"], row[\"hits\"])";

PyObject *core_lines_rows(lines_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_lines *lines = profile_of(self, 0);
    PyObject *list = lines ? PyList_New(0) : NULL;
    for (size_t i = 0; list && i < sw_lines_count(lines); i++) {
        const sw_lines_function *function = sw_lines_get(lines, i);
        PyObject *file = PyUnicode_DecodeUTF8(
            function->file, (Py_ssize_t)function->file_length, "replace");
        PyObject *name = PyUnicode_DecodeUTF8(
            function->name, (Py_ssize_t)function->name_length, "replace");
        for (size_t j = 0; file && name && list && j < function->line_count; j++) {
            const sw_lines_line *line = &function->lines[j];
            if (!line->hits && !line->ns) {
                continue;
            }
            PyObject *row = Py_BuildValue("{sOsOsIsKsK}", "file", file, "function", name,
                                          "line", (unsigned)line->line, "hits",
                                          (unsigned long long)line->hits, "time_ns",
                                          (unsigned long long)line->ns);
            if (!row || PyList_Append(list, row) != 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(row);
        }
        if (!file || !name) {
            Py_CLEAR(list);
        }
        Py_XDECREF(file);
        Py_XDECREF(name);
    }
    sw_lines_free(lines);
    return list;
}

const char core_lines_text_doc[] = "text($self, /, columns=0)\n--\n\n"
                                   "The profile as a table for each function, source "
                                   "lines cut to `columns` (0: never).\n\n"
                                   "    report = stepwatch.lines.text(columns=100)";

PyObject *core_lines_text(lines_object *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"columns", NULL};
    Py_ssize_t columns = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:text", keywords, &columns)) {
        return NULL;
    }
    if (columns < 0) {
        PyErr_SetString(PyExc_ValueError, "columns must not be negative");
        return NULL;
    }
    return make_text(self, (size_t)columns, 1);
}

const char core_lines_to_json_doc[] =
    "to_json($self, /)\n--\n\n"
    "The profile as a JSON document, schema stepwatch.lines/1.\n\n"
    "    Path(\"lines.json\").write_text(stepwatch.lines.to_json())";

PyObject *core_lines_to_json(lines_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_lines *lines = profile_of(self, 1);
    if (!lines) {
        return NULL;
    }
    sw_writer *writer = sw_writer_to_memory();
    if (writer) {
        sw_export_lines_json(writer, lines);
    }
    sw_lines_free(lines);
    return finish(writer);
}

const char core_lines_to_dict_doc[] =
    "to_dict($self, /)\n--\n\n"
    "What to_json() says, as dicts and lists.\n\n"
    "    slowest = stepwatch.lines.to_dict()[\"functions\"][0]";

PyObject *core_lines_to_dict(lines_object *self, PyObject *ignored)
{
    PyObject *text = core_lines_to_json(self, ignored);
    PyObject *json = text ? core_import("json") : NULL;
    PyObject *result = json ? PyObject_CallMethod(json, "loads", "O", text) : NULL;
    Py_XDECREF(json);
    Py_XDECREF(text);
    return result;
}

/* Width of the terminal that `file` is; 0 when it is none. */
static size_t terminal_columns(PyObject *file)
{
    PyObject *os = core_import("os");
    PyObject *number = os ? PyObject_CallMethod(file, "fileno", NULL) : NULL;
    PyObject *size =
        number ? PyObject_CallMethod(os, "get_terminal_size", "O", number) : NULL;
    PyObject *width = size ? PyObject_GetAttrString(size, "columns") : NULL;
    const long columns = width ? PyLong_AsLong(width) : 0;
    Py_XDECREF(width);
    Py_XDECREF(size);
    Py_XDECREF(number);
    Py_XDECREF(os);
    core_error_forget();
    return columns > 0 ? (size_t)columns : 0;
}

/* Whether the file takes more than ASCII; one without an encoding takes any text. */
static int takes_unicode(PyObject *file)
{
    PyObject *encoding = PyObject_GetAttrString(file, "encoding");
    int result = 1;
    if (encoding && PyUnicode_Check(encoding)) {
        const char *name = PyUnicode_AsUTF8(encoding);
        result = name && (strncasecmp(name, "utf", 3) == 0);
    }
    Py_XDECREF(encoding);
    core_error_forget();
    return result;
}

const char core_lines_print_doc[] = "print($self, /, file=None)\n--\n\n"
                                    "Write text() to a file, sys.stdout by default.\n\n"
                                    "    stepwatch.lines.print(file=sys.stderr)";

PyObject *core_lines_print(lines_object *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"file", NULL};
    PyObject *file = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:print", keywords, &file)) {
        return NULL;
    }
    if (file == Py_None) {
        file = PySys_GetObject("stdout");
        if (!file || file == Py_None) {
            Py_RETURN_NONE;
        }
    }
    Py_INCREF(file);
    PyObject *text = make_text(self, terminal_columns(file), takes_unicode(file));
    const int result = text ? PyFile_WriteObject(text, file, Py_PRINT_RAW) : -1;
    Py_XDECREF(text);
    Py_DECREF(file);
    if (result != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

const char core_lines_save_doc[] =
    "save($self, path, /)\n--\n\n"
    "Write the profile to a file: JSON if its name ends in .json, text if in .txt.\n\n"
    "    stepwatch.lines.save(\"lines.txt\")";

PyObject *core_lines_save(lines_object *self, PyObject *path)
{
    PyObject *name = PyOS_FSPath(path);
    if (!name) {
        return NULL;
    }
    if (!PyUnicode_Check(name)) {
        Py_SETREF(name, PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(name)));
        if (!name) {
            return NULL;
        }
    }
    PyObject *json = PyUnicode_FromString(".json");
    PyObject *plain = PyUnicode_FromString(".txt");
    PyObject *text = NULL;
    if (json && plain) {
        if (PyUnicode_Tailmatch(name, json, 0, PY_SSIZE_T_MAX, 1) == 1) {
            text = core_lines_to_json(self, NULL);
        } else if (PyUnicode_Tailmatch(name, plain, 0, PY_SSIZE_T_MAX, 1) == 1) {
            text = make_text(self, 0, 1);
        } else {
            PyErr_Format(PyExc_ValueError,
                         "a line profile is saved as .json or .txt, not as '%U'", name);
        }
    }
    PyObject *io = text ? core_import("io") : NULL;
    PyObject *file = io ? PyObject_CallMethod(io, "open", "Osiss", name, "w", -1, "utf-8",
                                              "backslashreplace")
                        : NULL;
    PyObject *written = file ? PyObject_CallMethod(file, "write", "O", text) : NULL;
    PyObject *closed = NULL;
    if (file) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        closed = PyObject_CallMethod(file, "close", NULL);
        if (type) {
            PyErr_Clear();
            PyErr_Restore(type, value, traceback);
        }
    }
    PyObject *result = written && closed ? Py_None : NULL;
    Py_XINCREF(result);
    Py_XDECREF(closed);
    Py_XDECREF(written);
    Py_XDECREF(file);
    Py_XDECREF(io);
    Py_XDECREF(text);
    Py_XDECREF(plain);
    Py_XDECREF(json);
    Py_DECREF(name);
    return result;
}
