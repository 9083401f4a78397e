/* Whether a line of a loop computes from the same things each time round, told from the source. */
#ifndef SW_ANALYZE_SOURCE_INPUTS_H
#define SW_ANALYZE_SOURCE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks at the statement that begins at `line`, of the function that begins at `first`. It computes the same again where it
 * names something, and nothing that the innermost loop around it names elsewhere (constants in capitals may be); without a loop
 * the function is taken for the body of one, and its arguments differ. What looks like chance, a clock, a stream or an object
 * that goes on is never the same. A guess: names are all that is known. False also where the statement cannot be read. */
bool sw__source_same_inputs(const char *text, size_t length, uint32_t first,
                            uint32_t line);

/* Whether the statement is given something that the same loop calls elsewhere, as models are: what it does then depends on what
 * was trained. */
bool sw__source_uses_model(const char *text, size_t length, uint32_t first,
                           uint32_t line);

/* Whether the statement at `line` uses what the one at `from` gives, or what others of the innermost loop around both make of it:
 * `action = policy.sample()` between `policy = net(state)` and `env.step(action)`. */
bool sw__source_follows(const char *text, size_t length, uint32_t first, uint32_t from,
                        uint32_t line);

/* Whether the statement goes on from where it was a round before, and the loop around it is given nothing else: the loop counts, or
 * waits for an end, its number picks nothing but what the loop itself puts there, and the statement uses what it gave, or what
 * others of the loop made of that. Simulations do: `state, reward[t] = world.step(action[t])`. */
bool sw__source_goes_on(const char *text, size_t length, uint32_t first, uint32_t line);

#endif
