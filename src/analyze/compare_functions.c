/* A function profile as it is compared. */
#include <math.h>

#include "analyze/compare.h"

int sw_compare_input_of_functions(sw_compare_input **out, const sw_functions *functions,
                                  const char *path, sw_error_info *info)
{
    sw_compare_input *input = sw__compare_input_new(path);
    const double unit = sw_functions_unit_ns(functions);
    int error = input ? SW_OK : SW_ENOMEM;
    double sum = 0;
    *out = NULL;
    for (size_t i = 0; !error && i < sw_functions_count(functions); i++) {
        const sw_function *function = sw_functions_get(functions, i);
        const char *name =
            function->qualname_length ? function->qualname : function->name;
        struct sw__measured *part =
            sw__measured_put(input, SW_COMPARED_FUNCTION, name, function->file, 0);
        if (!part) {
            error = SW_ENOMEM;
            break;
        }
        const double self = (double)function->totals.self * unit;
        part->line = part->line ? part->line : function->line;
        part->calls += function->totals.calls;
        part->total.mean = isnan(part->total.mean) ? self : part->total.mean + self;
        sum += self;
    }
    if (error) {
        sw_compare_input_free(input);
        return sw_error_set(info, error, "%s", sw_error_text(error));
    }
    input->functions = true;
    input->side.duration_s = sum / 1e9;
    *out = input;
    return SW_OK;
}
