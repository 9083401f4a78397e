/* Names of sections and the phases they stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <stepwatch/record.h>

static int phase_of(const char *name)
{
    return sw_phase_of_name(name, strlen(name));
}

static void phases_have_their_own_names(void **state)
{
    (void)state;
#define CHECK(number, name, text) assert_int_equal(phase_of(text), SW_PHASE_##name);
    SW_PHASE_TABLE(CHECK)
#undef CHECK
}

static void usual_names_are_known(void **state)
{
    (void)state;
    static const struct {
        int phase;
        const char *names[12];
    } table[] = {
        {SW_PHASE_DATA_WAIT,
         {"data", "dataloader", "load_batch", "data_loading", "get_batch", "next_batch"}},
        {SW_PHASE_H2D, {"to_device", "transfer", "host_to_device"}},
        {SW_PHASE_PREPROCESS, {"preprocessing", "tokenize"}},
        {SW_PHASE_AUGMENT, {"augmentation"}},
        {SW_PHASE_COLLATE, {"collate_fn"}},
        {SW_PHASE_FORWARD, {"forward_pass", "fwd", "model_forward"}},
        {SW_PHASE_LOSS, {"compute_loss", "criterion"}},
        {SW_PHASE_BACKWARD, {"backward_pass", "bwd", "grad", "loss.backward"}},
        {SW_PHASE_OPTIMIZER,
         {"optimizer_step", "optimizer.step", "update", "clip_grad", "clip_grad_norm_",
          "gradient_clipping"}},
        {SW_PHASE_ZERO_GRAD, {"zero_grads", "optimizer.zero_grad"}},
        {SW_PHASE_COMMUNICATION, {"all_reduce", "allreduce", "AllReduce"}},
        {SW_PHASE_SYNC, {"synchronize", "cuda.synchronize"}},
        {SW_PHASE_LOGGING, {"log", "log_metrics"}},
        {SW_PHASE_GC, {"gc.collect"}},
        {SW_PHASE_COMPILE, {"jit"}},
        {SW_PHASE_VALIDATION, {"validate", "evaluate", "eval"}},
        {SW_PHASE_CHECKPOINT, {"save_checkpoint"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (const char *const *name = table[i].names; *name; name++) {
            if (phase_of(*name) != table[i].phase) {
                fail_msg("%s is %d", *name, phase_of(*name));
            }
        }
    }
}

static void spelling_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"zero_grad", "Zero-Grad", "ZERO GRAD",
                                        "zero.grad"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(phase_of(names[i]), SW_PHASE_ZERO_GRAD);
    }
    assert_int_equal(phase_of("FORWARD"), SW_PHASE_FORWARD);
}

static void other_names_have_no_phase(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "step",
        "train",
        "model",
        "batch",
        "my_forward",
        "forwar",
        "forward_extra",
        "forward/",
        "reforward",
        "datagram",
        "epoch_17",
        "loss1",
        " forward",
        "förward",
        "update_counts",
        "t",
        "save",
        "a_name_that_is_much_longer_than_any_alias_in_the_table",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (phase_of(names[i]) != SW_PHASE_INHERIT) {
            fail_msg("%s is %d", names[i], phase_of(names[i]));
        }
    }
    assert_int_equal(sw_phase_of_name(NULL, 0), SW_PHASE_INHERIT);
    assert_int_equal(sw_phase_of_name("data\0", 5), SW_PHASE_INHERIT);
}

static void the_length_counts(void **state)
{
    (void)state;
    assert_int_equal(sw_phase_of_name("forward_and_more", 7), SW_PHASE_FORWARD);
    const char exact[4] = {'l', 'o', 's', 's'}; /* no NUL behind it */
    assert_int_equal(sw_phase_of_name(exact, sizeof exact), SW_PHASE_LOSS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_have_their_own_names),
        cmocka_unit_test(usual_names_are_known),
        cmocka_unit_test(spelling_does_not_matter),
        cmocka_unit_test(other_names_have_no_phase),
        cmocka_unit_test(the_length_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
