/* What stands in for functions of torch's and rests while steps are watched in brief. */
#ifndef STEPWATCH_EXT_RESTING_H
#define STEPWATCH_EXT_RESTING_H

#include "core.h"
#include <stdbool.h>

/* Whether a backward must be seen in every step, for not each of them has an update. */
enum core_rest { CORE_REST_ENDS, CORE_REST_ALL, CORE_REST_BUT_BACKWARD };

/* Everything rests, or does no more. Leaves exceptions as they are. With the GIL. */
void core_rests(enum core_rest rest);
/* Nothing rests any more, for a compiler has begun to look at what stands there. */
void core_rests_never(void);

int core_resting_add(PyObject *module);

#endif
