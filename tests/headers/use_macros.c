/* The macros of the public headers, as a program in C or C++ would write them. */
#include <stepwatch/stepwatch.h>

int use_macros(int n);

int use_macros(int n)
{
    SW_SCOPE("outer");
    SW_SCOPE("inner");
    int sum = 0;
    for (int i = 0; i < n; i++) {
        SW_SECTION("nested") {
            SW_SECTION("deeper") {
                if (i == 3) {
                    break;
                }
                sum += i;
            }
        }
        if (i == 7) {
            SW_SCOPE("last");
            return sum;
        }
    }
    SW_SECTION("statement")
        sum++;
    return sw_init(NULL) < 0 ? -1 : sum;
}
