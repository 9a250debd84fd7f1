#include "coordinator/wlbd/detection/hash.h"

uint64_t wlbd_hash_number(uint64_t hash, uint64_t number)
{
	return (hash ^ number) * UINT64_C(1099511628211);
}

uint64_t wlbd_hash_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = wlbd_hash_number(hash, (unsigned char)*text);
	return hash;
}
