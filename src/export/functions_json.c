/* A function profile as JSON, schema stepwatch.functions/1. */
#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/function_order.h"

static void put_totals(sw_writer *writer, const sw_functions *functions,
                       const sw_function_totals *totals)
{
    const double unit_s = sw_functions_unit_ns(functions) / 1e9;
    sw_json_key(writer, "calls");
    sw_json_uint(writer, totals->calls);
    sw_json_key(writer, "primitive_calls");
    sw_json_uint(writer, totals->primitive_calls);
    sw_json_key(writer, "errors");
    if (sw_functions_knows_errors(functions)) {
        sw_json_uint(writer, totals->errors);
    } else {
        sw_json_null(writer);
    }
    sw_json_key(writer, "self_s");
    sw_json_double(writer, (double)totals->self * unit_s);
    sw_json_key(writer, "total_s");
    sw_json_double(writer, (double)totals->total * unit_s);
}

static void put_key(sw_writer *writer, const sw_function *function)
{
    sw_json_key(writer, "file");
    sw_json_string_n(writer, function->file, function->file_length);
    sw_json_key(writer, "line");
    sw_json_uint(writer, function->line);
    sw_json_key(writer, "name");
    sw_json_string_n(writer, function->name, function->name_length);
}

static void put_callers(sw_writer *writer, const sw_functions *functions,
                        const struct sw__callers *callers, uint32_t index)
{
    sw_json_key(writer, "callers");
    sw_json_array_begin(writer);
    for (size_t at = callers->first[index]; at < callers->first[index + 1]; at++) {
        const sw_function_call *call =
            sw_functions_get_call(functions, callers->order[at]);
        sw_json_object_begin(writer);
        put_key(writer, sw_functions_get(functions, call->caller));
        put_totals(writer, functions, &call->totals);
        sw_json_object_end(writer);
    }
    sw_json_array_end(writer);
}

void sw_export_functions_json(sw_writer *writer, const sw_functions *functions,
                              const sw_functions_text_options *options)
{
    const sw_functions_text_options standard = {.sort = SW_FUNCTIONS_BY_TOTAL};
    struct sw__callers callers = {0};
    options = options ? options : &standard;
    if (!sw__writer_is_good(writer)) {
        return;
    }
    uint32_t *order = sw__functions_sorted(functions, options->sort);
    if (!order || sw__callers_find(&callers, functions) != SW_OK) {
        sw__writer_fail(writer, SW_ENOMEM, 0);
        sw__free(order);
        sw__callers_free(&callers);
        return;
    }
    const size_t count = sw_functions_count(functions);
    const size_t shown =
        options->limit && options->limit < count ? options->limit : count;
    const sw_function_totals sum = sw_functions_sum(functions);
    sw_json_start(writer, true);
    sw_json_object_begin(writer);
    sw_json_key(writer, "schema");
    sw_json_string(writer, "stepwatch.functions/1");
    put_totals(writer, functions, &sum);
    sw_json_key(writer, "count");
    sw_json_uint(writer, count);
    sw_json_key(writer, "functions");
    sw_json_array_begin(writer);
    for (size_t i = 0; i < shown; i++) {
        const sw_function *function = sw_functions_get(functions, order[i]);
        sw_json_object_begin(writer);
        put_key(writer, function);
        sw_json_key(writer, "qualname");
        sw_json_string_n(writer, function->qualname, function->qualname_length);
        sw_json_key(writer, "native");
        sw_json_bool(writer, function->native);
        put_totals(writer, functions, &function->totals);
        put_callers(writer, functions, &callers, order[i]);
        sw_json_object_end(writer);
    }
    sw_json_array_end(writer);
    sw_json_object_end(writer);
    sw_write_text(writer, "\n");
    sw__free(order);
    sw__callers_free(&callers);
}
