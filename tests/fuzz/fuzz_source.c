/* The readers of a program's own source on arbitrary bytes: whatever line of whatever function is asked for. */
#include <stddef.h>
#include <stdint.h>

#include "analyze/source_calls.h"
#include "analyze/source_chance.h"
#include "analyze/source_gathers.h"
#include "analyze/source_holds.h"
#include "analyze/source_inputs.h"
#include "analyze/source_keeps.h"
#include "analyze/source_lists.h"
#include "analyze/source_loops.h"
#include "analyze/source_names.h"
#include "analyze/source_picks.h"
#include "analyze/source_rounds.h"
#include "analyze/source_samples.h"
#include "analyze/source_tables.h"

/* So many lines are asked for, the one behind the last among them. */
enum { LINES_MOST = 48 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const char *text, size_t length, uint32_t first, uint32_t line)
{
    struct sw__source_call call, other;
    const char *begin, *end;
    bool adds;
    (void)sw__source_loop(text, length, first, line);
    (void)sw__source_loop_around(text, length, first, line);
    (void)sw__source_same_inputs(text, length, first, line);
    (void)sw__source_uses_model(text, length, first, line);
    (void)sw__source_rounds_apart(text, length, first, line);
    (void)sw__source_goes_on(text, length, first, line);
    (void)sw__source_follows(text, length, first, first, line);
    (void)sw__source_asks_apart(text, length, first, line);
    (void)sw__source_tensor_of_list(text, length, first, line);
    (void)sw__source_by_chance(text, length, first);
    (void)sw__source_uses_chance(text, length, first, line);
    if (sw__source_call_get(text, length, line, NULL, &call)) {
        (void)sw__source_call_keeps(text, length, first, line, &call, false);
        (void)sw__source_call_holds(text, length, &call);
        (void)sw__source_without_grad(text, length, first, line);
        (void)sw__source_call_given(text, length, first, line, &call);
        if (sw__source_call_get(text, length, first, NULL, &other)) {
            (void)sw__source_call_same(&call, &other);
            (void)sw__source_call_passed(text, length, first, &call, &other, &other);
        }
    }
    (void)sw__source_call_get(text, length, line, "forward", &call);
    if (sw__source_statement(text, length, line, &begin, &end)) {
        (void)sw__source_value(begin, end, &adds);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct sw__source_line at;
    uint32_t count = 0;
    while (count < LINES_MOST && sw__source_line_get(text, size, count + 1, &at)) {
        (void)sw__source_is_loop(&at);
        (void)sw__source_is_code(&at);
        count++;
    }
    for (uint32_t line = 0; line <= count + 1; line++) {
        (void)sw__source_keeps(text, size, line);
        (void)sw__source_only_gathers(text, size, line);
        (void)sw__source_piles(text, size, line, line % 2);
        (void)sw__source_given_nothing(text, size, line);
        (void)sw__source_changes_self(text, size, line);
        (void)sw__source_self_stays(text, size, line);
        (void)sw__source_yields(text, size, line);
        (void)sw__source_has_chance(text, size, line);
        (void)sw__source_trains(text, size, line);
        (void)sw__source_picks(text, size, line, "head");
        look(text, size, 1, line);
        look(text, size, line, count);
    }
    struct sw__source_part part;
    (void)sw__source_part_holds(text, size, "Table", "rows", &part);
    (void)sw__source_same_samples(text, size, "Rows");
    (void)sw__source_moves_parameters(text, size);
    (void)sw__source_evaluates(text, size);
    (void)sw__source_whole_table(text, size, "rows");
    return 0;
}
