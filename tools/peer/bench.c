// Times a model by libllama, all layers on the GPU: bench MODEL.gguf PROMPT GENERATED RUNS prints medians and ranges in tok/s. See docs/benchmarks.md.
//
// Built against npm's @node-llama-cpp/linux-x64-vulkan, LIB its folder of libraries, and the headers of llama.cpp v0.5.0:
// cc -O2 -IHEADERS bench.c -o bench -LLIB -l:libllama.vulkan.v0.5.0.so -l:libggml-base.so -l:libggml.vulkan.v0.5.0.so -Wl,-rpath,LIB -Wl,--allow-shlib-undefined
// GGML_DIR=LIB tells where the backends are.
#include "ggml-backend.h"
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 512, MAX_RUNS = 16 };

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void warnings(enum ggml_log_level level, const char *text, void *unused) {
	if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

// compute runs n tokens, random ones, and waits for the device.
static void compute(struct llama_context *c, int vocab, int n) {
	llama_token tokens[BATCH];
	for (int i = 0; i < n; i++)
		tokens[i] = 1 + rand() % (vocab - 1);
	if (llama_decode(c, llama_batch_get_one(tokens, n)) != 0) {
		fprintf(stderr, "bench: error: decode %d tokens\n", n);
		exit(1);
	}
	llama_synchronize(c);
}

// rate clears the context, computes the tokens that are there before, and returns the speed of n more, `step` at a time.
static double rate(struct llama_context *c, int vocab, int before, int n, int step) {
	llama_memory_clear(llama_get_memory(c), true);
	if (before > 0)
		compute(c, vocab, before);
	double from = seconds();
	for (int i = 0; i < n; i += step)
		compute(c, vocab, n - i < step ? n - i : step);
	return n / (seconds() - from);
}

static void print(const char *name, int n, double *rates, int runs) {
	qsort(rates, runs, sizeof *rates, ascending);
	printf("%s%d %.1f (%.1f..%.1f) tok/s\n", name, n, rates[runs / 2], rates[0], rates[runs - 1]);
}

int main(int argc, char **argv) {
	int prompt = argc == 5 ? atoi(argv[2]) : 0, generated = argc == 5 ? atoi(argv[3]) : 0, runs = argc == 5 ? atoi(argv[4]) : 0;
	if (prompt < 1 || generated < 1 || runs < 1 || runs > MAX_RUNS) {
		fprintf(stderr, "Usage: bench MODEL.gguf PROMPT GENERATED RUNS\n");
		return 2;
	}
	llama_log_set(warnings, NULL);
	ggml_backend_load_all_from_path(getenv("GGML_DIR"));
	llama_backend_init();
	struct llama_model_params mp = llama_model_default_params();
	mp.n_gpu_layers = 999;
	struct llama_context_params cp = llama_context_default_params();
	cp.n_ctx = prompt + generated + 64;
	cp.n_batch = cp.n_ubatch = BATCH;
	cp.no_perf = true;
	struct llama_model *m = llama_model_load_from_file(argv[1], mp);
	struct llama_context *c = m ? llama_init_from_model(m, cp) : NULL;
	if (c == NULL) {
		fprintf(stderr, "bench: error: load %s\n", argv[1]);
		return 1;
	}
	int vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
	double p[MAX_RUNS + 1], g[MAX_RUNS + 1];
	for (int r = 0; r <= runs; r++) { // the first warms up
		p[r] = rate(c, vocab, 0, prompt, BATCH);
		g[r] = rate(c, vocab, 1, generated, 1);
	}
	print("pp", prompt, p + 1, runs);
	print("tg", generated, g + 1, runs);
	fflush(stdout);
	_Exit(0); // drivers may hang at the end
}
