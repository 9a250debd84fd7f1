#include "coordinator/client/digest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <nettle/sha2.h>

void wlb_digest_request(const char *method, const char *path, const void *body, size_t length,
                        char digest[WLB_DIGEST_SIZE])
{
	struct sha256_ctx context;
	uint8_t sum[SHA256_DIGEST_SIZE];

	sha256_init(&context);
	sha256_update(&context, strlen(method), (const uint8_t *)method);
	sha256_update(&context, 1, (const uint8_t *)"\n");
	sha256_update(&context, strlen(path), (const uint8_t *)path);
	sha256_update(&context, 1, (const uint8_t *)"\n");
	if (length > 0)
		sha256_update(&context, length, body);
	sha256_digest(&context, sizeof(sum), sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(digest + 2 * i, 3, "%02x", sum[i]);
}
