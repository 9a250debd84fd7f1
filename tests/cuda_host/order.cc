#include "tests/cuda_host/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_host_orders orders;
static bool known;
static uint64_t state;

static void refuse(const char *variable, const char *value, const char *rule)
{
	fprintf(stderr, "cuda_host: %s=%s: it must be %s\n", variable, value, rule);
	exit(2);
}

static void read_environment()
{
	const char *order = getenv("CUDA_HOST_ORDER"), *queues = getenv("CUDA_HOST_QUEUES");
	struct cuda_host_orders read = {CUDA_HOST_ASCENDING, 0, 0};
	char end;
	unsigned long long seed = 0;
	if (order != NULL && strcmp(order, "descending") == 0) {
		read.order = CUDA_HOST_DESCENDING;
	} else if (order != NULL && sscanf(order, "random:%llu%c", &seed, &end) == 1) {
		read.order = CUDA_HOST_RANDOM;
		read.seed = seed;
	} else if (order != NULL && strcmp(order, "ascending") != 0) {
		refuse("CUDA_HOST_ORDER", order, "ascending, descending or random:SEED");
	}
	if (queues != NULL && strcmp(queues, "late") == 0)
		read.late = 1;
	else if (queues != NULL && strcmp(queues, "immediate") != 0)
		refuse("CUDA_HOST_QUEUES", queues, "immediate or late");
	cuda_host_set_orders(&read);
}

void cuda_host_set_orders(const struct cuda_host_orders *wanted)
{
	orders = *wanted;
	state = wanted->seed;
	known = true;
}

const struct cuda_host_orders *cuda_host_get_orders(void)
{
	if (!known)
		read_environment();
	return &orders;
}

/* SplitMix64 (Steele, Lea & Flood 2014). */
uint64_t cuda_host_random(uint64_t count)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % count;
}
