/* FOR_EACH_CPU: a function whose loops are compiled for each width of vectors there is; the loader takes the widest. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

/* INDEPENDENT: no iteration of the loop that follows reads what another one writes. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif
