package com.example.shop;

import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.server.ResponseStatusException;

@Controller
class ShopController {

    private final Products products;
    private final PurchaseOrders orders;
    private final Cart cart;

    ShopController(Products products, PurchaseOrders orders, Cart cart) {
        this.products = products;
        this.orders = orders;
        this.cart = cart;
    }

    @GetMapping("/")
    String home(Model model) {
        model.addAttribute("title", "New in the shop");
        model.addAttribute("products", products.findTop12ByOrderByIdDesc());
        return "list";
    }

    @GetMapping("/search")
    String search(@RequestParam String q, Model model) {
        model.addAttribute("title", "Search: " + q);
        model.addAttribute("products", products.findTop20ByDescriptionContainingIgnoreCaseOrderByPriceCents(q));
        return "list";
    }

    @GetMapping("/products/{id}")
    String product(@PathVariable long id, Model model) {
        model.addAttribute("product", existing(id));
        return "product";
    }

    @PostMapping("/cart")
    String add(@RequestParam long product, Model model) {
        cart.add(existing(product).getId());
        model.addAttribute("products", products.findAllById(cart.productIds()));
        return "cart";
    }

    @PostMapping("/orders")
    String order(Model model) {
        if (cart.productIds().isEmpty()) {
            throw new ResponseStatusException(HttpStatus.CONFLICT, "the cart is empty");
        }
        var order = orders.save(new PurchaseOrder(products.findAllById(cart.productIds())));
        cart.empty();
        model.addAttribute("order", order);
        return "order";
    }

    private Product existing(long id) {
        return products.findById(id).orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND));
    }
}
