/* Nothing: what counts is that a library of this name is loaded. */
int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}
