/* FOR_EACH_CPU: a function whose loops are compiled for each width of vectors there is; the loader takes the widest. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif
