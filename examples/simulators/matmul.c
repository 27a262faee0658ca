/* Multiplies matrices in tiles; prints a checksum, and the time of the fastest of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 256, tile = argc > 2 ? atoi(argv[2]) : 32;
    float *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b);
    float *c = malloc(n * n * sizeof *c);
    int rounds = argc > 3 ? atoi(argv[3]) : 3;
    double best = 1e30, sum = 0;
    for (int i = 0; i < n * n; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    for (int round = 0; round < rounds; round++) {
        double began = now_ns();
        for (int i = 0; i < n * n; i++) c[i] = 0;
        for (int kk = 0; kk < n; kk += tile)
            for (int jj = 0; jj < n; jj += tile)
                for (int i = 0; i < n; i++)
                    for (int k = kk; k < kk + tile && k < n; k++)
                        for (int j = jj; j < jj + tile && j < n; j++)
                            c[i * n + j] += a[i * n + k] * b[k * n + j];
        if (now_ns() - began < best) best = now_ns() - began;
    }
    for (int i = 0; i < n * n; i++) sum += c[i];
    printf("checksum = %.0f\n", sum);
    if (rounds > 1) printf("time = %.0f ns\n", best);
    return 0;
}
