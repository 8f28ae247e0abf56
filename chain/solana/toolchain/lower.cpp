// Makes TinyGo's IR fit for the BPF backend, which has five registers for arguments and one for a result.
//
//	sbfLowerAggregates  before any optimisation: structs and arrays become memory. A function takes pointers to them (to copies
//	                    that nobody writes to), and writes its result where its second argument points.
//	sbfPackArguments    after all optimisation: where more than five arguments are left, the fifth is a pointer to the others.
//
// A frame has 4 KB, so no function grows beyond half of that by inlining.
//
// Both rewrite every function and every call by one rule from type to type, so that indirect calls fit as well.
#include "llvm-c/Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>
using namespace llvm;

static bool agg(Type *t) { return t->isStructTy() || t->isArrayTy(); }

static bool ours(CallBase *c) { return !c->isInlineAsm() && !isa<IntrinsicInst>(c); }

static FunctionType *lowered(FunctionType *t) {
  Type *ptr = PointerType::get(t->getContext(), 0);
  std::vector<Type *> ps;
  for (Type *p : t->params()) ps.push_back(agg(p) ? ptr : p);
  Type *ret = t->getReturnType();
  if (agg(ret)) {
    ps.insert(ps.begin() + std::min<size_t>(1, ps.size()), ptr);
    ret = Type::getVoidTy(t->getContext());
  }
  return FunctionType::get(ret, ps, t->isVarArg());
}

static Function *retype(Function *f, FunctionType *nt) {
  Function *n = Function::Create(nt, f->getLinkage(), f->getAddressSpace(), "", f->getParent());
  n->takeName(f);
  n->setCallingConv(f->getCallingConv());
  n->setUnnamedAddr(f->getUnnamedAddr());
  n->setVisibility(f->getVisibility());
  AttributeSet fa = f->getAttributes().getFnAttrs();
  n->setAttributes(AttributeList::get(f->getContext(), fa.removeAttribute(f->getContext(), Attribute::Memory), {}, {}));
  n->splice(n->end(), f);
  return n;
}

namespace {
struct Lower {
  Module &m;
  const DataLayout &dl;
  LLVMContext &ctx;
  DenseMap<Value *, Value *> slot;      // of aggregate arguments and instructions: where they are
  DenseMap<Constant *, Value *> consts; // of constants
  Value *result = nullptr;              // where the function's result goes
  Function *f = nullptr;
  std::vector<Instruction *> dead;

  Lower(Module &m) : m(m), dl(m.getDataLayout()), ctx(m.getContext()) {}

  uint64_t size(Type *t) { return dl.getTypeAllocSize(t); }

  AllocaInst *make(Type *t) {
    IRBuilder<> b(&*f->getEntryBlock().begin());
    auto *a = b.CreateAlloca(t);
    a->setAlignment(Align(8));
    return a;
  }

  Value *at(Value *v) {
    if (auto *c = dyn_cast<Constant>(v)) {
      Value *&g = consts[c];
      if (!g) {
        Constant *init = isa<UndefValue>(c) ? Constant::getNullValue(c->getType()) : c;
        auto *gv = new GlobalVariable(m, c->getType(), true, GlobalValue::PrivateLinkage, init, "agg");
        gv->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
        gv->setAlignment(Align(8));
        g = gv;
      }
      return g;
    }
    auto it = slot.find(v);
    if (it == slot.end()) { errs() << "sbf: no place for " << *v << "\n"; abort(); }
    return it->second;
  }

  void copy(IRBuilder<> &b, Value *to, Value *v, MaybeAlign toAlign) { // an aggregate into memory
    uint64_t n = size(v->getType());
    if (n == 0 || isa<UndefValue>(v)) return;
    if (isa<ConstantAggregateZero>(v)) { b.CreateMemSet(to, b.getInt8(0), n, toAlign); return; }
    b.CreateMemCpy(to, toAlign, at(v), isa<Argument>(v) ? MaybeAlign(dl.getABITypeAlign(v->getType())) : MaybeAlign(8), n);
  }

  Value *field(IRBuilder<> &b, Type *t, Value *p, ArrayRef<unsigned> idx) {
    std::vector<Value *> is{b.getInt32(0)};
    for (unsigned i : idx) is.push_back(b.getInt32(i));
    return b.CreateInBoundsGEP(t, p, is);
  }

  bool lowers(Instruction &i) {
    if (!agg(i.getType())) return false;
    if (auto *c = dyn_cast<CallBase>(&i)) return ours(c);
    return true;
  }

  void instruction(Instruction &i) {
    IRBuilder<> b(&i);
    if (auto *l = dyn_cast<LoadInst>(&i); l && agg(l->getType())) {
      if (uint64_t n = size(l->getType())) b.CreateMemCpy(slot[l], MaybeAlign(8), l->getPointerOperand(), l->getAlign(), n);
    } else if (auto *s = dyn_cast<StoreInst>(&i); s && agg(s->getValueOperand()->getType())) {
      copy(b, s->getPointerOperand(), s->getValueOperand(), s->getAlign());
    } else if (auto *e = dyn_cast<ExtractValueInst>(&i)) {
      Value *from = e->getAggregateOperand();
      if (auto *c = dyn_cast<CallBase>(from); c && !ours(c)) return;
      Value *p = field(b, from->getType(), at(from), e->getIndices());
      if (agg(e->getType())) {
        if (uint64_t n = size(e->getType())) b.CreateMemCpy(slot[e], MaybeAlign(8), p, dl.getABITypeAlign(e->getType()), n);
      } else {
        e->replaceAllUsesWith(b.CreateLoad(e->getType(), p));
      }
    } else if (auto *v = dyn_cast<InsertValueInst>(&i)) {
      Value *into = v->getAggregateOperand(), *what = v->getInsertedValueOperand();
      if (slot[v] != slot.lookup(into)) copy(b, slot[v], into, Align(8));
      Value *p = field(b, v->getType(), slot[v], v->getIndices());
      if (agg(what->getType())) copy(b, p, what, dl.getABITypeAlign(what->getType()));
      else if (!isa<UndefValue>(what)) b.CreateStore(what, p);
    } else if (auto *s = dyn_cast<SelectInst>(&i); s && agg(s->getType())) {
      Value *p = b.CreateSelect(s->getCondition(), at(s->getTrueValue()), at(s->getFalseValue()));
      if (uint64_t n = size(s->getType())) b.CreateMemCpy(slot[s], MaybeAlign(8), p, MaybeAlign(1), n);
    } else if (auto *z = dyn_cast<FreezeInst>(&i); z && agg(z->getType())) {
      copy(b, slot[z], z->getOperand(0), Align(8));
    } else if (auto *r = dyn_cast<ReturnInst>(&i); r && r->getReturnValue() && agg(r->getReturnValue()->getType())) {
      copy(b, result, r->getReturnValue(), dl.getABITypeAlign(r->getReturnValue()->getType()));
      b.CreateRetVoid();
    } else if (auto *c = dyn_cast<CallInst>(&i); c && ours(c)) {
      FunctionType *t = c->getFunctionType(), *nt = lowered(t);
      if (t == nt) return;
      std::vector<Value *> args;
      for (Value *a : c->args()) args.push_back(agg(a->getType()) ? at(a) : a);
      if (agg(t->getReturnType())) args.insert(args.begin() + std::min<size_t>(1, args.size()), slot[c]);
      auto *n = b.CreateCall(nt, c->getCalledOperand(), args);
      n->setCallingConv(c->getCallingConv());
      if (!agg(t->getReturnType()) && !c->getType()->isVoidTy()) c->replaceAllUsesWith(n);
    } else {
      return;
    }
    dead.push_back(&i);
  }

  void body() {
    if (f->isDeclaration()) return;
    dead.clear();
    std::vector<Instruction *> all;
    for (auto &bb : *f) for (auto &i : bb) all.push_back(&i);
    DenseMap<PHINode *, Value *> incoming;
    for (auto *i : all) {
      if (!lowers(*i)) continue;
      if (auto *v = dyn_cast<InsertValueInst>(i)) { // in place, if it alone goes on from the one before
        auto *w = dyn_cast<InsertValueInst>(v->getAggregateOperand());
        if (w && w->hasOneUse() && w->getParent() == v->getParent() && slot.count(w)) { slot[v] = slot[w]; continue; }
      }
      slot[i] = make(i->getType());
      if (auto *p = dyn_cast<PHINode>(i)) incoming[p] = make(i->getType());
    }
    for (auto *i : all) {
      auto *p = dyn_cast<PHINode>(i);
      if (!p) { instruction(*i); continue; }
      if (!agg(p->getType())) continue;
      for (unsigned k = 0; k < p->getNumIncomingValues(); k++) {
        IRBuilder<> b(p->getIncomingBlock(k)->getTerminator());
        copy(b, incoming[p], p->getIncomingValue(k), Align(8));
      }
      IRBuilder<> b(&*p->getParent()->getFirstInsertionPt());
      if (uint64_t n = size(p->getType())) b.CreateMemCpy(slot[p], MaybeAlign(8), incoming[p], MaybeAlign(8), n);
      dead.push_back(p);
    }
    for (auto *i : dead) if (!i->getType()->isVoidTy()) i->replaceAllUsesWith(PoisonValue::get(i->getType()));
    for (auto *i : dead) i->eraseFromParent();
  }

  void run() {
    std::vector<Function *> fs;
    for (auto &g : m) if (!g.isIntrinsic()) fs.push_back(&g);
    std::vector<Function *> old;
    for (auto *g : fs) {
      f = g;
      result = nullptr;
      FunctionType *t = g->getFunctionType(), *nt = lowered(t);
      if (t != nt) {
        f = retype(g, nt);
        bool ret = agg(t->getReturnType());
        unsigned at = std::min<unsigned>(1, g->arg_size()), k = 0;
        for (auto &a : g->args()) {
          if (ret && k == at) k++;
          Argument *n = f->getArg(k++);
          n->takeName(&a);
          if (agg(a.getType())) {
            slot[&a] = n;
            n->addAttr(Attribute::NoCapture);
            n->addAttr(Attribute::ReadOnly);
            n->addAttr(Attribute::NoAlias);
            n->addAttr(Attribute::getWithDereferenceableBytes(ctx, std::max<uint64_t>(1, size(a.getType()))));
          } else {
            a.replaceAllUsesWith(n);
            AttributeSet as = g->getAttributes().getParamAttrs(a.getArgNo());
            for (Attribute x : as) n->addAttr(x);
          }
        }
        if (ret) {
          result = f->getArg(at);
          result->setName("result");
          f->getArg(at)->addAttr(Attribute::NoCapture);
          f->getArg(at)->addAttr(Attribute::NoAlias);
          f->getArg(at)->addAttr(Attribute::getWithDereferenceableBytes(ctx, std::max<uint64_t>(1, size(t->getReturnType()))));
        }
        g->replaceAllUsesWith(f);
        old.push_back(g);
      }
      body();
      f->addFnAttr("inline-max-stacksize", "2048");
    }
    for (auto *g : old) g->eraseFromParent();
  }
};
} // namespace

static const unsigned registers = 5;

static FunctionType *packed(FunctionType *t, StructType *&rest) {
  rest = nullptr;
  if (t->getNumParams() <= registers || t->isVarArg()) return t;
  std::vector<Type *> ps(t->param_begin(), t->param_begin() + registers - 1), rs(t->param_begin() + registers - 1, t->param_end());
  rest = StructType::get(t->getContext(), rs);
  ps.push_back(PointerType::get(t->getContext(), 0));
  return FunctionType::get(t->getReturnType(), ps, false);
}

extern "C" int sbfPackArguments(LLVMModuleRef ref) {
  Module &m = *unwrap(ref);
  std::vector<Function *> fs;
  std::vector<CallInst *> calls;
  for (auto &f : m) {
    if (!f.isIntrinsic()) fs.push_back(&f);
    for (auto &bb : f) for (auto &i : bb)
      if (auto *c = dyn_cast<CallInst>(&i); c && ours(c) && c->arg_size() > registers) calls.push_back(c);
  }
  for (auto *c : calls) {
    StructType *rest;
    FunctionType *nt = packed(c->getFunctionType(), rest);
    if (!rest) continue;
    Function *f = c->getFunction();
    IRBuilder<> e(&*f->getEntryBlock().begin()), b(c);
    auto *a = e.CreateAlloca(rest);
    uint64_t n = m.getDataLayout().getTypeAllocSize(rest);
    b.CreateLifetimeStart(a, b.getInt64(n));
    std::vector<Value *> args;
    for (unsigned k = 0; k < c->arg_size(); k++) {
      if (k < registers - 1) args.push_back(c->getArgOperand(k));
      else if (!isa<UndefValue>(c->getArgOperand(k))) b.CreateStore(c->getArgOperand(k), b.CreateStructGEP(rest, a, k - registers + 1));
    }
    args.push_back(a);
    auto *call = b.CreateCall(nt, c->getCalledOperand(), args);
    call->setCallingConv(c->getCallingConv());
    b.CreateLifetimeEnd(a, b.getInt64(n));
    if (!c->getType()->isVoidTy()) c->replaceAllUsesWith(call);
    c->eraseFromParent();
  }
  for (auto *f : fs) {
    StructType *rest;
    FunctionType *nt = packed(f->getFunctionType(), rest);
    if (!rest) continue;
    Function *n = retype(f, nt);
    for (unsigned k = 0; k < f->arg_size(); k++) {
      if (k < registers - 1) {
        f->getArg(k)->replaceAllUsesWith(n->getArg(k));
        for (Attribute x : f->getAttributes().getParamAttrs(k)) n->getArg(k)->addAttr(x);
      } else if (!n->isDeclaration()) {
        IRBuilder<> b(&*n->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        Value *v = b.CreateLoad(f->getArg(k)->getType(), b.CreateStructGEP(rest, n->getArg(registers - 1), k - registers + 1));
        f->getArg(k)->replaceAllUsesWith(v);
      }
    }
    auto *p = n->getArg(registers - 1);
    p->addAttr(Attribute::NoCapture);
    p->addAttr(Attribute::ReadOnly);
    p->addAttr(Attribute::NoAlias);
    p->addAttr(Attribute::getWithDereferenceableBytes(m.getContext(), m.getDataLayout().getTypeAllocSize(rest)));
    f->replaceAllUsesWith(n);
    f->eraseFromParent();
  }
  return verifyModule(m, &errs());
}

extern "C" int sbfLowerAggregates(LLVMModuleRef ref) {
  Module &m = *unwrap(ref);
  StripDebugInfo(m);
  Lower(m).run();
  return verifyModule(m, &errs());
}
