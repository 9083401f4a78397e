/* The least that a program needs: steps, and the sections within them. */
#include <stepwatch/stepwatch.h>

static double sum;

static void work(int rounds)
{
    for (int i = 1; i <= rounds; i++) {
        sum += 1.0 / i;
    }
}

int main(void)
{
    sw_init(NULL);
    for (int i = 0; i < 1000; i++) {
        sw_step_begin();
        SW_SECTION("forward") {
            work(10000);
        }
        SW_SECTION("backward") {
            work(20000);
        }
        sw_step_end();
    }
    sw_shutdown();
    return sum > 0.0 ? 0 : 1;
}
