/* The parts of a model and what they cost, for the rules about it. */
#ifndef SW_ANALYZE_MODEL_PARTS_H
#define SW_ANALYZE_MODEL_PARTS_H

#include "analyze/rules.h"

struct sw__part {
    const sw_training_module *module;
    size_t parent_length; /* of the name up to the last dot */
    bool leaf;            /* no part of it was called by itself */
    double forward_ns;    /* of a step, all below included: exact */
    double step_ns;       /* with the backward, which is measured in few steps */
};

struct sw__model {
    struct sw__part *parts;
    size_t count;
    double kinds; /* parts, of those in a long row the first few */
    double calls; /* of leaves, in a step */
    double leaf_ns;
    /* Of layers of torch's that compute for long in few calls: forward and backward. They are none of many small operations. */
    double large_ns, large_back_ns;
};

/* slow_module: a part that is out of proportion (rules_outlier.c). */
void sw__rules_outlier(sw_findings *all, const struct sw__model *model);

#endif
