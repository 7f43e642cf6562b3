"""The statements that random programs are made of, and the order in which they come.

A template is an expression with places to fill: ``{f}`` a floating-point variable, ``{i}`` an integer, ``{b}`` a
boolean, ``{u}`` any of them; ``{kf}``, ``{ki}``, ``{kb}`` known tensors written out; and numbers and types, see
`drawing`. The same place twice is filled the same way, ``{f1}`` and ``{f2}`` are filled apart.

The kind of a group of templates says how the assumption that unknowns are of ordinary size bears on them, see
`measuring.Ordinary`:

free       nothing is assumed of the result: it follows from the arguments exactly
sum        ordinary again if two or more of the arguments are unknown
product    the same; and not infinite where one argument is
scaled     one unknown times a number: of any size, but not infinite
curved     ordinary again
positive   the same, and not 0
row        a sum or a product along the last axis: ordinary again
spread     the same, and not 0
matmul     the same, of two factors
attention  the same: products of queries and keys are
cast       from a floating-point number to an integer: defined where the integer type holds it
"""

from __future__ import annotations

Templates = tuple[tuple[str, str], ...]


def templates(**kinds: str) -> Templates:
    """Return pairs of a kind and a template; the templates of a kind are written behind one another."""
    return tuple((kind, " ".join(t.split())) for kind, text in kinds.items() for t in text.split(";") if t.strip())


MASKS = templates(
    free="""
    {f} > {c}; {f} <= {c}; {f} == {c}; {f1} >= {f2}; {i} != 0; {i} != 0; {i} > {s}; {i1} == {i2}; ~{b}; ~({f} > 0);
    {b1} ^ {b2}; {b1} | {b2}; {b1} & {b2}; torch.logical_or({u}, {b}); torch.logical_not({u}); {u}.bool();
    {b1}.masked_fill({b2}, False); {b}.any(-1, keepdim=True); {b}.all(-1, keepdim=True); {b}.cumsum(-1) > 1;
    {b}.sum(-1, keepdim=True) > 0; {f}.abs().sum(-1, keepdim=True) > 0; {f}.abs() > 0; {f}.isnan(); {f}.isinf();
    torch.isfinite({f}); {b}.cummax(-1).values; {b}.flip(-1); {b}.roll(1, -1); {b}.unsqueeze(-1) & {b}.unsqueeze(-2);
    torch.isin({i}, torch.tensor([0, 2])); torch.arange({n}) < {b}.sum(-1, keepdim=True); {i} & 1 == 0;
    torch.arange({n}) >= ({i} % {n}); {f} != {f}; ({f1} > 0) == ({f2} > 0); {f}.eq(0).all(-1, keepdim=True)
    """
)
PARTLY = templates(
    free="""
    {b} | {kb}; {b} & {kb}; {kb} & {b}; {kb} | {b}; {b} | {kb}; {b} & {kb}; ~({b} | {kb}); ~({b} & {kb});
    ({b1} | {kb}) & {b2}; ({b1} & {kb}) | {b2}; {b} == {kb}; {b} > {kb}; {b} <= {kb}; torch.logical_and({u}, {kb});
    torch.logical_or({u}, {kb}); torch.logical_xor({u}, {kb}); torch.where({b1}, {kb}, {b2});
    torch.where({kb}, {b1}, {b2}); torch.where({b}, {kb}, {kb2}); {b}.masked_fill({kb}, True);
    torch.maximum({b}, {kb}); torch.minimum({kb}, {b}); ({b} | {kb}).any(-1, keepdim=True);
    ({b} & {kb}).all(-1, keepdim=True); {b} * {kb}; ({b} | {kb}).cumsum(-1) > 0; ({b} & {kb}).cumsum(-1) > 1;
    {b} | torch.ones({n}, {n}, dtype=torch.bool).triu(1); {b} & torch.ones({n}, {n}, dtype=torch.bool).tril();
    torch.cat([{b}[..., 1:], {kb}.expand({b}.shape)[..., :1]], -1);
    ~({b} | torch.ones({n}, {n}, dtype=torch.bool).tril());
    torch.stack([*{b}.reshape(-1)[:{n} - 1], torch.tensor(True)]); F.pad({b}, (1, 0), value=True)[..., :-1];
    {b}.tril() if {b}.ndim > 1 else {b} & {kb}; {b} + {kb}
    """
)

HIDDEN = templates(
    free="""
    {f}.masked_fill({b}, {fill}); {f}.masked_fill({b}, {fill}); {f}.masked_fill({b}, {fill});
    {f}.masked_fill(~{b}, {fill}); {f}.masked_fill({b}, {low}); {f}.masked_fill({b}, {low});
    {f}.masked_fill({kb}, {fill}); torch.where({b}, {f}, {fill}); torch.where({b}, {fill}, {f});
    torch.where({kb}, {f}, {fill}); torch.where({b}, {f1}, {f2}); torch.where({b}, {f}, {kf});
    torch.where({kb}, {f1}, {f2}); {f} + {b}.to({f}.dtype) * {low}; {f} + (1 - {b}.to({f}.dtype)) * {low};
    {f} + (1 - {i}) * -1e4; {f} + (1.0 - {b}.to({f}.dtype)) * torch.finfo({f}.dtype).min;
    {f} + {b}.to({f}.dtype).log(); {f} - {b}.int() * 10000; {f} + torch.zeros({n}).masked_fill({b}, {fill});
    ({f} + {kmask}).masked_fill({b}, {fill}); {f} * {b}; {f} * {b}.to({fd}); {f} * {b} + (~{b}) * {low};
    {f} * {i}.clamp(0, 1); {b} * {low} + {f}; {kmask}.masked_fill({b}, {fill});
    torch.zeros({n}).masked_fill({b}, {fill}); torch.where({b}, {kmask}, {kmask2});
    (1 - {b}.to({fd})) * torch.finfo({fd}).min; (1 - {i}) * {low}; {f} + {kmask} * {b};
    {f}.masked_fill({b}, {fill}) + {kmask};
    torch.zeros({n}).masked_fill({b1}, {fill}) + torch.zeros({n}).masked_fill({b2}, {fill2});
    torch.where({b}, {kf}, {fill});
    {f}.masked_fill(torch.stack([*{b}.reshape(-1)[:{n} - 1], torch.tensor(True)]), {fill});
    {f}.masked_fill({b} | {kb}, {fill}); {f}.masked_fill({b} & {kb}, {fill});
    torch.where({b} & {kb}, {low}, {f} + {kmask})
    """,
    sum="{f1} + {f2}; {f1} + {f2}.detach(); {f1} - {f2}",
)
ADDED = templates(
    free="""
    {f} + {kmask}; {f} + {kmask}; {f} + {kmask}; {kmask} + {f}; ({f} + {kmask}) + {kmask2}; {f} - {kmask}.abs();
    {f} + {kmask}.masked_fill({b}, {fill}); {f}.tril(); {f} * {kz}; {f}.expand(2, {n}).masked_fill({krow}, {low});
    {f}.expand(2, {n}) + {kmask}; {f}.masked_fill({kb}, {low}); {f} + {low}; {f} - 900; {f} + {num};
    {f}.expand({n}, {n}).masked_fill(torch.ones({n}, {n}, dtype=torch.bool).triu(1), {low}); {f} + 2 * {kmask};
    {f} + torch.full(({n}, {n}), {low}).triu(1); torch.cat([{f}, {kmask}.expand({f}.shape)], -1)[..., 1:];
    torch.add({kmask}, {f}, alpha={num}); F.pad({f}[..., 1:], (1, 0), value={low}); torch.where({kb}, {kmask}, {f})
    """
)

SCALES = templates(
    scaled="""
    {f} * {num}; {f} * {num}; {f} * {num}; {num} * {f}; {f} / {num}; {f} / {n} ** 0.5; torch.mul({f}, {num});
    {f} * {kscale}; {f} / {kscale}; {f} * {num} * {num2}; {b} * {num}; {i} * {num};
    F.linear({f}, torch.eye({n}, dtype={f}.dtype) * {num}); {f} @ (torch.eye({n}, dtype={f}.dtype) * {num});
    {f} * 100 * 100; ({f} * {num}).to({fd})
    """,
    product="{f} * {kf}; {i} * {f}; {f1} * {f2}",
)
CURVES = templates(
    product="{f1} * {f2}; torch.mul({f1}, {f2}); {f1} * {f2}; {f1}.unsqueeze(-1) * {f2}.unsqueeze(-2)",
    sum="""
    {f1} + {f2}; {f1}.unsqueeze(-1) - {f2}.unsqueeze(-2); torch.add({f1}, {f2}, alpha={num});
    torch.lerp({f1}, {f2}, 0.5); torch.sub({f1}, {f2}, alpha=2); torch.add({f}, {kf}, alpha={num});
    torch.lerp({f1}, {f2}, {kz}); {f} + {i}; torch.rsub({f1}, {f2}, alpha={num})
    """,
    curved="""
    {f1} / {f2}; {f1} / (F.softplus({f2}) + 0.1); {f1} / torch.sigmoid({f2}); {f1} / {f2}.exp(); {num} / {f};
    {f} ** 2; {f} ** 3; {f}.square(); {f} ** {s}; torch.pow({f1}, {f2}); (-2.0) ** {f}; torch.pow({kf}, {f});
    torch.pow({f}, {ki}); {f} ** 0.5; ({f}.abs() + 0.5).log(); {f}.log(); torch.log1p({f}.abs()); {f} % {pos};
    {f} // {pos}; {f}.sin(); torch.fmod({f}, {pos}); torch.addcmul({f1}, {f2}, {f3}, value={num}); {f}.expm1();
    torch.addcmul({f1}, {f2}, {kz}); torch.addcdiv({f1}, {f2}, {f3}.exp(), value=0.5); F.silu({f}); F.gelu({f});
    torch.logaddexp({f1}, {f2}); F.elu({f}); torch.hypot({f1}, {f2}); F.logsigmoid({f});
    torch.xlogy({f1}, {f2}.exp()); 1 / {f}.exp(); {f1} * {f2}.sigmoid()
    """,
    positive="""
    {f}.exp(); {f}.exp(); {f}.exp2(); 2.0 ** {f}; 0.5 ** {f}; F.softplus({f}); torch.sigmoid({f});
    torch.exp({f} + {low}); torch.pow({pos}, {f}); torch.sigmoid({f} + {kmask}); 1.0 ** {f}; (1 + 1e-9) ** {f};
    ({f} + {kmask}).exp()
    """,
    free="""
    torch.maximum({f1}, {f2}); torch.minimum({f1}, {f2}); torch.fmax({f1}, {f2}); {f}.tanh(); {f}.abs(); {i}.to({fd})
    """,
)
#: Operations that may come out the same whatever their argument: what they are given may be very low or very high.
SETTLING = templates(
    free="""
    {f}.relu(); {f}.tanh(); {f}.clamp(-1, 1); {f}.clamp(min={c}); {f}.clamp(max={c}); {f}.clamp_min(True); {f}.sign();
    torch.clamp({f}, {kf}, {kf} + 1); torch.maximum({f}, {kf}); torch.minimum({f}, {kmask}); torch.maximum({f}, {kb});
    torch.minimum({f}, {b}); torch.maximum({f}, {b}); torch.maximum({f}, {kmask}); torch.minimum({f}, {kb});
    {f}.sgn(); {f}.nan_to_num(); {f}.nan_to_num(0.0); {f}.nan_to_num(0.25);
    torch.nan_to_num({f}, nan=0.0, posinf=1.0, neginf=-1.0); F.threshold({f}, {c}, 0.0); F.hardtanh({f});
    F.relu6({f}); F.hardsigmoid({f}); torch.heaviside({f}, {f}.new_ones(1)); F.leaky_relu({f}, 0.0); {f}.erf();
    torch.fmax({f}, {kf}); torch.copysign({f}, {kf}); {f}.clamp(0, 0); {f} > {c}; {f} < {c};
    {f}.clamp(min=-{pos}).sign(); {f1}.maximum({f2}).clamp(max={c}); {f}.clamp_max(False); {f} == {c}; {f1} > {f2};
    {f}.isnan(); {f}.isinf(); {f}.bool(); {f}.abs() < {c}; torch.isfinite({f}); {f} >= {kf}; {f}.atan(); {f}.round();
    {f}.floor()
    """,
    positive="{f}.exp(); {f}.sigmoid(); {f}.exp2(); F.softplus({f})",
    curved="F.silu({f}); F.gelu({f}); F.elu({f}); {f}.expm1(); F.mish({f}); F.logsigmoid({f}); {f}.square()",
)
CASTS = templates(
    free="""
    {f}.to({fd}); {f}.to({fd}).to({fd2}); {f}.half().float(); {i}.to({fd}); {b}.to({fd}); {f}.bool(); {i}.to({id});
    {b}.to({id}); {f} + {kb}; {i}.double() - 10000.0; {i}.to({fd}) + {kmask}; {f}.double() + {kmask}
    """,
    cast="""
    {f}.to({id}); {f}.round().to({id}); {f}.sigmoid().to({id}); {f}.clamp(0, 1).to({id}); ({f} * {num}).to({id})
    """,
)
INTEGERS = templates(
    free="""
    {i1} + {i2}; {i} * {s}; {i} * 0; {i} | {ki}; {i} & {ki}; {i} ^ {ki}; {i1} | {i2}; {i1} & {i2}; {i} << {s};
    {i} >> {s}; {ki} << ({i} & 3); {ki} >> ({i} & 3); {i} % {n}; {i} // {n}; {i} // 2; {i}.to({id}); {b}.to({id});
    -{i}; {i}.abs(); {i}.clamp(0, 2); {i}.clamp(min=1); {i} | {b}; {i} & {b}; 1 - {i}; ~{i};
    torch.maximum({i1}, {i2}); {i} | {kb}; {i} & {kb}; {i} | torch.tensor(-1, dtype=torch.int8);
    torch.maximum({i}, {ki}); torch.minimum({i}, {kb}); {b}.sum(-1, keepdim=True); {b}.cumsum(-1);
    {f}.argmax(-1, keepdim=True); {f}.argsort(-1); torch.where({b}, {i}, {ki}); {i} * {b}; {i} ** 2; {i} - 10000;
    {i}.masked_fill({b}, 0); {i} | torch.tensor(1, dtype=torch.uint8); {i}.relu(); {i}.sign(); {b} * {ki};
    {i} - {b}.to({id}); {i}.remainder(3); {i}.amax(-1, keepdim=True); {i}.sum(-1, keepdim=True); {b}.int() + {kb};
    {b} * 255 + {i}; {ki} * {i}
    """
)

SOFTMAX = templates(
    free="""
    F.softmax({f}, -1); {f}.softmax(-1); F.softmax({f}, -1); F.softmax({f}, -1, dtype={fd}); F.log_softmax({f}, -1);
    F.log_softmax({f}, -1, dtype={fd}); F.softmin({f}, -1); {f}.softmax(-1).nan_to_num(0.0);
    ({f} + {kmask}).softmax(-1); F.softmax({f} + {kmask}, -1, dtype={fd}).log();
    {f}.masked_fill({b}, {fill}).softmax(-1); F.softmax({f}, 0);
    {f}.masked_fill({b}, {fill}).softmax(-1).nan_to_num(0.0); {f}.softmax(-1).masked_fill({b}, 0.0);
    {f}.masked_fill({b} | {kb}, {fill}).softmax(-1); {f}.masked_fill({b}, {fill}).softmax(-1) * {b};
    {f}.masked_fill({b} & {kb}, {fill}).log_softmax(-1); F.softmax({f}.masked_fill({kb}, {fill}) + {kmask}, -1);
    torch.zeros({n}).masked_fill({b}, {fill}).softmax(-1).nan_to_num(0.5);
    ({f} - {f}.amax(-1, keepdim=True)).softmax(-1); torch.where({b}, {f}, {low}).softmax(-1); {f}.softmax(-1)[..., :1]
    """,
    row="torch.logsumexp({f}, -1, keepdim=True); {f}.exp() / {f}.exp().sum(-1, keepdim=True)",
)
QKV = "F.scaled_dot_product_attention({f1}.unsqueeze(-1), {f2}.unsqueeze(-1), {f3}.unsqueeze(-1), attn_mask="
ONE = "F.scaled_dot_product_attention({f1}.unsqueeze(-1), {f1}.unsqueeze(-1), {f1}.unsqueeze(-1), attn_mask="
ATTENTION = templates(
    attention=";".join(
        (
            QKV + "{b}.unsqueeze(-2))", QKV + "({b} | {kb}).unsqueeze(-2))", QKV + "({b} & {kb}).unsqueeze(-2))",
            ONE + "{b} & torch.ones({n}, {n}, dtype=torch.bool).tril())", ONE + "{b}.unsqueeze(-2))",
            ONE + "{f2}.unsqueeze(-2).to({f1}.dtype))", ONE + "({f1} + {kmask}).unsqueeze(-2))",
            ONE + "torch.zeros(1, {n}).masked_fill({b}, {fill}).to({f1}.dtype))", ONE + "{kb}.expand({n}, {n}))",
            ONE + "{kmask} + torch.zeros({n}, {n}).to({f1}.dtype).masked_fill({b}, {fill}))",
            QKV + "torch.where({b}, {kmask}, {kmask2}).unsqueeze(-2).to({f1}.dtype))",
            QKV + "None, is_causal=True)", ONE + "({kmask} + {kmask2}).expand({n}, {n}))",
            ONE + "(torch.full(({n}, {n}), {low}).triu(1) + torch.zeros({n}).masked_fill({b}, {low})).to({f1}.dtype))",
        )
    )
)  # fmt: skip
PRODUCTS = templates(
    matmul="""
    {f1} @ {f2}; {f1} @ {f2}.mT; {f} @ {kf}; torch.outer({f1}, {f2}); F.linear({f1}, {f2});
    torch.dot({f1}, {f2})[None]
    """
)
REDUCTIONS = templates(
    row="""
    {f}.sum(-1, keepdim=True); {f}.sum(-1, keepdim=True); ({f1} * {f2}).sum(-1, keepdim=True);
    {f}.mean(-1, keepdim=True); {f}.cumsum(-1); {f}.prod(-1, keepdim=True); {f}.cumprod(-1); {f}.logcumsumexp(-1);
    {f}.nansum(-1, keepdim=True); ({f} * {b}).sum(-1, keepdim=True) / {b}.sum(-1, keepdim=True).clamp(min=1);
    {f} / {f}.abs().sum(-1, keepdim=True)
    """,
    spread="""
    {f}.norm(dim=-1, keepdim=True); {f}.std(-1, keepdim=True); F.layer_norm({f}, ({n},)); F.normalize({f}, dim=-1)
    """,
    free="""
    {f}.amax(-1, keepdim=True); {f}.amin(-1, keepdim=True); {f}.max(-1).values.unsqueeze(-1);
    {f}.argmax(-1, keepdim=True); {f}.max(-1).indices.unsqueeze(-1); {f}.argmin(-1, keepdim=True);
    {u}.any(-1, keepdim=True); {u}.all(-1, keepdim=True); {f}.cummax(-1).values; {f}.cummax(-1).indices;
    {f}.cummin(-1).values; {f}.sort(-1).values; {f}.sort(-1).indices; {f}.topk(2, -1).values; {f}.topk(2, -1).indices;
    {f}.median(-1, keepdim=True).values; {f} - {f}.amax(-1, keepdim=True); F.max_pool1d({f}.reshape(1, -1), 2, 1);
    {f}.count_nonzero(-1)[None]; {f} == {f}.amax(-1, keepdim=True); {f} >= {f}.topk(2, -1).values[..., -1:];
    torch.where({b}, {f1}, {f2}).amax(-1, keepdim=True)
    """,
)
MOVES = templates(
    free="""
    {f}.flip(-1); {f}.roll(1, -1); {f}[..., {index}]; torch.gather({f}, -1, ({i} % {n}).long()); {f}[..., 1:];
    {f}.unsqueeze(-2); {f}.index_select(-1, {index}); torch.gather({f}, -1, {f}.argsort(-1));
    F.one_hot(({i} % {n}).long(), {n}); {f}.expand(2, {n}); F.one_hot(({i} % {n}).long(), {n}) * {f};
    torch.cat([{f}, {kf}.expand({f}.shape)], -1)[..., 2:-1]; torch.stack([{f1}, {f2}]);
    F.pad({f}, (1, 0), value={fill})[..., :-1]; torch.where({f} > 0, {f}, {low}); torch.gather({f}, -1, {b}.long());
    {f}.scatter(-1, {index}[:1].expand({f}[..., :1].shape), {fill}); {f1}.index_copy(-1, {index}[:1], {f2}[..., :1]);
    {f}[..., :1] + {kf}; {f}[..., :1]; torch.where({b}, {f1}[..., :1], {f2}); F.one_hot({b}.long(), 2)[..., 0];
    {kf}[({i} % {n}).long()]
    """
)

#: What a program is about, from its first statement to its last; stages in brackets are left out at times.
ANY = (MASKS, PARTLY, HIDDEN, ADDED, SCALES, CURVES, SETTLING, CASTS, INTEGERS, SOFTMAX, REDUCTIONS, MOVES)
AFTER = (SETTLING, SETTLING, HIDDEN, REDUCTIONS, MASKS, SCALES, CURVES, PRODUCTS)
HIDING = ((MASKS,), (PARTLY,), [MASKS, PARTLY], (HIDDEN,), [ADDED, SCALES], (SOFTMAX,), [*AFTER])
ATTENDING = ([MASKS], (PARTLY,), [CURVES, SCALES, HIDDEN], (ATTENTION,), [*AFTER])
ROUTES: tuple[tuple[tuple[Templates, ...] | list[Templates], ...], ...] = (
    HIDING,
    HIDING,
    ATTENDING,
    ATTENDING,
    ((MASKS,), [PARTLY], (HIDDEN,), (SOFTMAX, REDUCTIONS), (SETTLING, HIDDEN), [*AFTER]),
    ([CURVES], (SCALES,), [SCALES], (ADDED, HIDDEN), (SOFTMAX, SETTLING), [*AFTER]),
    ([CURVES], (ADDED,), (SCALES, CURVES, CASTS), [SCALES, CURVES], (SOFTMAX, SETTLING), [*AFTER]),
    ((INTEGERS,), (INTEGERS, CASTS), [INTEGERS, CASTS], (CASTS, SCALES), [ADDED], (SETTLING, SOFTMAX, MASKS)),
    ([MASKS], [CURVES], (ADDED, HIDDEN), [SCALES, CASTS], (REDUCTIONS,), (SETTLING, MASKS, MOVES), [*AFTER]),
    ((CURVES, SCALES, ADDED), (CASTS, SCALES, CURVES), (CASTS, SETTLING), [SCALES, SETTLING], [SETTLING]),
    ((PARTLY,), (PARTLY, MASKS), (HIDDEN,), (SOFTMAX, SETTLING), [*AFTER]),
    (ANY, ANY, ANY, [*ANY], [*ANY], [*ANY]),
)
