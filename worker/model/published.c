#include "worker/model/published.h"

#include <stdio.h>
#include <string.h>

int wlb_published_block(const struct wlb_model *m, const char *name, char published[WLB_PUBLISHED_NAME_BYTES],
                        struct wlb_tensor_block *block)
{
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	int64_t f = m->intermediate_size;
	const struct {
		const char *part, *fused;
		int64_t first_row, rows;
	} parts[] = {
		{"self_attn.q_proj", "self_attn.qkv_proj", 0, q + 2 * kv},
		{"self_attn.k_proj", "self_attn.qkv_proj", q, q + 2 * kv},
		{"self_attn.v_proj", "self_attn.qkv_proj", q + kv, q + 2 * kv},
		{"mlp.gate_proj", "mlp.gate_up_proj", 0, 2 * f},
		{"mlp.up_proj", "mlp.gate_up_proj", f, 2 * f},
	};
	int bytes = snprintf(published, WLB_PUBLISHED_NAME_BYTES, "%s", name);
	for (size_t i = 0; wlb_family(m->family)->fused_tensors && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *at = strstr(name, parts[i].part);
		if (at == NULL)
			continue;
		bytes = snprintf(published, WLB_PUBLISHED_NAME_BYTES, "%.*s%s%s", (int)(at - name), name,
		                 parts[i].fused, at + strlen(parts[i].part));
		block->global_rows = parts[i].rows;
		block->row_start += parts[i].first_row;
	}
	return bytes < WLB_PUBLISHED_NAME_BYTES ? 0 : -1;
}
