/* Lines of a loop that keep something each time round, told from the source. */
#ifndef SW_ANALYZE_SOURCE_KEEPS_H
#define SW_ANALYZE_SOURCE_KEEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A guess: what looks most like a place where values pile up. */
struct sw__source_keep {
    uint32_t line;    /* 0: none */
    const char *text; /* the statement, in the source */
    size_t length;
    bool sums;    /* it adds to a variable */
    bool gathers; /* it makes one of all that a list holds */
};

/* Looks at the body of the loop at line `loop`. Statements that keep plain numbers (`.item()`, `.detach()`, `float(…)`) are not
 * meant, nor are lists that are made anew inside the loop. */
struct sw__source_keep sw__source_keeps(const char *text, size_t length, uint32_t loop);

/* The statement of the function that begins at `first` which puts something at the end of all that is there, and makes a new one
 * of both: `self.keys = torch.cat([self.keys, keys])`, or by way of another name, `all = torch.cat([self.keys, keys])` and later
 * `self.keys = all` (`all[-size:]` is no more than that). Or which makes one of all that is in a list: `torch.cat(self.keys)`, where the
 * file has `self.keys.append(…)` and nothing that takes something out of it. `plain`: also of names without an attribute, which
 * the training loop may keep from step to step. */
struct sw__source_keep sw__source_piles(const char *text, size_t length, uint32_t first,
                                        bool plain);

#endif
