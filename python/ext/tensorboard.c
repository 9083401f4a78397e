/* stepwatch.tensorboard: event files of one's own, and a run as one. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stepwatch/export.h>
#include <stepwatch/tensorboard.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "charts.h"
#include "run.h"

typedef struct events_object {
    PyObject_HEAD pthread_mutex_t
        guard;         /* of `events`; the GIL is kept while it is held */
    sw_events *events; /* NULL when closed */
    PyObject *path;    /* str */
} events_object;

/* --- making and closing ----------------------------------------------------------- */

PyDoc_STRVAR(events_doc, "EventFile(logdir)\n--\n\n"
                         "A file of scalars, images and texts for TensorBoard.\n\n"
                         "Every value is in the file when its call returns.\n\n"
                         ">>> with stepwatch.tensorboard.EventFile('runs/a') as events:\n"
                         "...     events.scalar('loss', 0.25, step=10)");

static PyObject *events_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"logdir", NULL};
    PyObject *bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:EventFile", names,
                                     PyUnicode_FSConverter, &bytes)) {
        return NULL;
    }
    events_object *self = (events_object *)type->tp_alloc(type, 0);
    if (!self) {
        Py_DECREF(bytes);
        return NULL;
    }
    pthread_mutex_init(&self->guard, NULL);
    sw_error_info info = {0};
    const int error = sw_events_create(&self->events, PyBytes_AS_STRING(bytes), &info);
    Py_DECREF(bytes);
    if (error) {
        core_raise(error, &info);
    } else {
        self->path = PyUnicode_DecodeFSDefault(sw_events_path(self->events));
    }
    if (!self->path) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static sw_events *events_take(events_object *self)
{
    pthread_mutex_lock(&self->guard);
    sw_events *events = self->events;
    self->events = NULL;
    pthread_mutex_unlock(&self->guard);
    return events;
}

static void events_dealloc(events_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sw_events_close(events_take(self), NULL);
    pthread_mutex_destroy(&self->guard);
    Py_CLEAR(self->path);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *events_close(events_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_error_info info = {0};
    const int error = sw_events_close(events_take(self), &info);
    if (error) {
        return core_raise(error, &info);
    }
    Py_RETURN_NONE;
}

static PyObject *events_enter(events_object *self, PyObject *Py_UNUSED(ignored))
{
    Py_INCREF(self);
    return (PyObject *)self;
}

static PyObject *events_exit(events_object *self, PyObject *Py_UNUSED(args))
{
    return events_close(self, NULL);
}

/* --- values ----------------------------------------------------------------------- */

/* What an event has besides its value. */
struct moment {
    core_text tag;
    sw_event_time time;
};

static int moment_get(struct moment *moment, PyObject *tag, PyObject *step,
                      PyObject *wall_time)
{
    moment->time.wall_s = NAN;
    if (wall_time != Py_None) {
        moment->time.wall_s = PyFloat_AsDouble(wall_time);
        if (moment->time.wall_s == -1.0 && PyErr_Occurred()) {
            return -1;
        }
    }
    PyObject *number = PyNumber_Index(step);
    if (!number) {
        return -1;
    }
    moment->time.step = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (moment->time.step == -1 && PyErr_Occurred()) {
        return -1;
    }
    return core_text_get(tag, "tag", &moment->tag);
}

/* Calls `put` with the open file. */
static PyObject *with_events(events_object *self,
                             int (*put)(sw_events *, const struct moment *, void *,
                                        sw_error_info *),
                             const struct moment *moment, void *arg)
{
    sw_error_info info = {0};
    int error = SW_ESTATE;
    pthread_mutex_lock(&self->guard);
    if (self->events) {
        error = put(self->events, moment, arg, &info);
    } else {
        sw_error_set(&info, error, "the event file is closed");
    }
    pthread_mutex_unlock(&self->guard);
    if (error) {
        return core_raise(error, &info);
    }
    Py_RETURN_NONE;
}

static int put_scalar(sw_events *events, const struct moment *moment, void *arg,
                      sw_error_info *info)
{
    return sw_events_scalar(events, moment->tag.data, moment->time, *(double *)arg, info);
}

static PyObject *events_scalar(events_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tag", "value", "step", "wall_time", NULL};
    PyObject *tag, *step, *wall_time = Py_None;
    double value;
    struct moment moment = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OdO|O:scalar", names, &tag, &value,
                                     &step, &wall_time) ||
        moment_get(&moment, tag, step, wall_time) != 0) {
        return NULL;
    }
    PyObject *result = with_events(self, put_scalar, &moment, &value);
    core_text_release(&moment.tag);
    return result;
}

static int put_image(sw_events *events, const struct moment *moment, void *arg,
                     sw_error_info *info)
{
    const Py_buffer *bytes = arg;
    return sw_events_image(events, moment->tag.data, moment->time, bytes->buf,
                           (size_t)bytes->len, info);
}

/* The bytes of a file that is named. */
static PyObject *file_bytes(PyObject *path)
{
    PyObject *pathlib = PyImport_ImportModule("pathlib");
    PyObject *made = pathlib ? PyObject_CallMethod(pathlib, "Path", "O", path) : NULL;
    PyObject *bytes = made ? PyObject_CallMethod(made, "read_bytes", NULL) : NULL;
    Py_XDECREF(made);
    Py_XDECREF(pathlib);
    return bytes;
}

static PyObject *events_image(events_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tag", "image", "step", "wall_time", NULL};
    core_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *tag, *image, *step, *wall_time = Py_None, *result = NULL;
    struct moment moment = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:image", names, &tag, &image,
                                     &step, &wall_time) ||
        moment_get(&moment, tag, step, wall_time) != 0) {
        return NULL;
    }
    PyObject *bytes = core_chart_png(state, image);
    if (!bytes && !PyErr_Occurred()) {
        if (PyObject_CheckBuffer(image)) {
            Py_INCREF(image);
            bytes = image;
        } else {
            bytes = file_bytes(image);
        }
    }
    Py_buffer view;
    if (bytes && PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) == 0) {
        result = with_events(self, put_image, &moment, &view);
        PyBuffer_Release(&view);
    }
    Py_XDECREF(bytes);
    core_text_release(&moment.tag);
    return result;
}

static int put_text(sw_events *events, const struct moment *moment, void *arg,
                    sw_error_info *info)
{
    const core_text *text = arg;
    return sw_events_text(events, moment->tag.data, moment->time, text->data,
                          (size_t)text->length, info);
}

static PyObject *events_text(events_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tag", "text", "step", "wall_time", NULL};
    PyObject *tag, *words, *step, *wall_time = Py_None, *result = NULL;
    struct moment moment = {0};
    core_text text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:text", names, &tag, &words,
                                     &step, &wall_time) ||
        moment_get(&moment, tag, step, wall_time) != 0) {
        return NULL;
    }
    if (core_text_get(words, "text", &text) == 0) {
        result = with_events(self, put_text, &moment, &text);
        core_text_release(&text);
    }
    core_text_release(&moment.tag);
    return result;
}

static PyObject *events_get_path(events_object *self, void *Py_UNUSED(closure))
{
    Py_INCREF(self->path);
    return self->path;
}

#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef events_methods[] = {
    {"scalar", KEYWORDS(events_scalar), METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR(
         "scalar($self, /, tag, value, step, wall_time=None)\n--\n\nAdd a number.")},
    {"image", KEYWORDS(events_image), METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("image($self, /, tag, image, step, wall_time=None)\n--\n\n"
               "Add an image: the bytes of a PNG file, its path, or a chart.")},
    {"text", KEYWORDS(events_text), METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("text($self, /, tag, text, step, wall_time=None)\n--\n\n"
               "Add a text, which TensorBoard shows as Markdown.")},
    {"close", (PyCFunction)events_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\nEnd the file. Raises what went wrong before, if "
               "anything "
               "did.")},
    {"__enter__", (PyCFunction)events_enter, METH_NOARGS, PyDoc_STR("The file itself.")},
    {"__exit__", (PyCFunction)events_exit, METH_VARARGS, PyDoc_STR("End the file.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef events_getset[] = {
    {"path", (getter)events_get_path, NULL, PyDoc_STR("Path of the file."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot events_slots[] = {
    {Py_tp_doc, (void *)events_doc},       {Py_tp_new, events_new},
    {Py_tp_dealloc, events_dealloc},       {Py_tp_methods, events_methods},
    {Py_tp_getset, (void *)events_getset}, {0, NULL},
};

static PyType_Spec events_spec = {
    .name = "stepwatch.tensorboard.EventFile",
    .basicsize = sizeof(events_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = events_slots,
};

int core_tensorboard_add(PyObject *module)
{
    return core_type_add(module, CORE_EVENTS_TYPE, &events_spec);
}

/* --- runs ------------------------------------------------------------------------- */

/* The source of a run with its findings; the caller releases it. NULL with an exception. */
static core_source *analysed(PyObject *run)
{
    core_source *source = core_run_source(run);
    sw_error_info info = {0};
    int error = SW_OK;
    if (!source) {
        return NULL;
    }
    if (!source->run) {
        core_source_release(source);
        PyErr_SetString(PyExc_ValueError,
                        "nothing was recorded, so there is nothing to show");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    core_source_lock(source);
    error = core_source_summary(source, &info);
    error = error ? error : core_source_findings(source, &info);
    core_source_unlock(source);
    Py_END_ALLOW_THREADS;
    if (error) {
        core_source_release(source);
        core_raise(error, &info);
        return NULL;
    }
    return source;
}

PyObject *core_run_tensorboard(PyObject *self, PyObject *folder)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(folder, &bytes)) {
        return NULL;
    }
    core_source *source = analysed(self);
    sw_error_info info = {0};
    int error = SW_OK;
    if (source) {
        Py_BEGIN_ALLOW_THREADS;
        core_source_lock(source);
        error = sw_export_tensorboard(PyBytes_AS_STRING(bytes), source->summary,
                                      source->findings, &info);
        core_source_unlock(source);
        Py_END_ALLOW_THREADS;
    }
    core_source_release(source);
    Py_DECREF(bytes);
    if (error) {
        core_raise(error, &info);
    }
    if (!source || error) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *core_run_chart(PyObject *self, PyObject *name)
{
    core_text text;
    if (core_text_get(name, "the name of a chart", &text) != 0) {
        return NULL;
    }
    unsigned which = 0;
    while (which < SW_RUN_CHARTS &&
           strcmp(sw_run_chart_name((enum sw_run_chart)which), text.data) != 0) {
        which++;
    }
    core_text_release(&text);
    if (which == SW_RUN_CHARTS) {
        return PyErr_Format(PyExc_ValueError,
                            "there is no chart %R; there are steps, phases, memory, cpu "
                            "and gpu",
                            name);
    }
    core_source *source = analysed(self);
    sw_chart *chart = NULL;
    sw_error_info info = {0};
    int error = SW_OK;
    if (!source) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    core_source_lock(source);
    error = sw_run_chart(&chart, (enum sw_run_chart)which, source->summary, &info);
    core_source_unlock(source);
    Py_END_ALLOW_THREADS;
    core_source_release(source);
    if (error) {
        return core_raise(error, &info);
    }
    return core_chart_of(PyType_GetModuleState(Py_TYPE(self)), chart);
}
