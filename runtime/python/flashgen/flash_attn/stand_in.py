"""stand_in: other programs get these modules where they import FlashAttention's."""
import importlib
import sys

NAMES = {  # of FlashAttention -> of flashgen
    "flash_attn": "flash_attn", "flash_attn.bert_padding": "flash_attn.bert_padding",
    "flash_attn.flash_attn_interface": "flash_attn.flash_attn_interface", "flash_attn.layers": "flash_attn.layers",
    "flash_attn.layers.rotary": "flash_attn.layers.rotary", "flash_attn_interface": "flash_attn_interface"}


def stand_in():
    """From now on `import flash_attn` and `import flash_attn_interface` give flashgen's modules, in this process, and
    torch.ops.flash_attn_3 has its operators. It changes nothing in modules that have imported FlashAttention already."""
    for name, own in NAMES.items():
        sys.modules[name] = importlib.import_module(f"flashgen.{own}")
    importlib.import_module("flashgen.flash_attn.ops").define()
